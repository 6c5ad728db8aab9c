"""What figures of language models say in words, each statement with the cases that it rests on.

A statement is made where the intervals carry it; where they do not, that is what is said. What is compared here is
judged as in the tables: ``Judged`` has their comparisons, and those that only statements make are made together, too.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from rocmend.bench.comparison import compared, together, unusable
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import Measured, subject_of
from rocmend.bench.stats import Comparison, Difference
from rocmend.core.units import share_text

__all__ = ["TESTS", "Conclusion", "Line", "conclusions", "fit"]

TESTS = {"prompt": "reading a prompt", "generate": "generating"}
"""What a case of a language model has tokens of, and what it is called."""
_TASKS = {"prompt": "prompt", "generation": "generate"}
"""The tests by what cases of ``bench mlx`` call them."""
_STRAIGHT = 0.1
"""Relative distance of a point up to which points lie on a line."""
_SINGLE = "by single figures, whose noise is not known"
_FEWEST_POINTS = 3
"""Depths or models that a fit is made through at least: two lie on any line."""


class Line(msgspec.Struct, frozen=True):
    """A straight line through points, by least squares of relative errors.

    Attributes:
        start: Value at 0.
        slope: Change for one step.
        residual: Largest relative distance of a point.
    """

    start: float
    slope: float
    residual: float


def fit(points: Sequence[tuple[float, float]]) -> Line:
    """Fit a line; each point counts by its relative error, so that large values do not outweigh small ones.

    Args:
        points: At least two, at different places, of values above 0.
    """
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True)) / spread
    start = mean_y - slope * mean_x
    return Line(start, slope, max(abs(start + slope * x - y) / y for x, y in points))


class Judged:
    """Comparisons, such that a table and a statement never say two things of the same two figures.

    A table compares the settings of a run with the first one, all of them together. What else statements compare
    (settings with each other, a long context with a short one) is made together as well.

    Args:
        runs: Results of each run, in its order.
        usable: Those that statements are made about.
    """

    def __init__(self, runs: Iterable[Sequence[Measured]], usable: Sequence[Measured]) -> None:
        self._made: dict[tuple[int, int], Comparison] = {}
        for results in runs:
            first = {one.case.id: one for one in results if one.setting.id == results[0].setting.id}
            self._add((first[one.case.id], one) for one in results if one.case.id in first)
        cells: dict[tuple[str, int, str, int], list[Measured]] = defaultdict(list)
        for one in usable:
            cells[model_of(one), int(one.case.parameters[test_of(one)]), test_of(one), depth_of(one)].append(one)
        self._add(pair for cell in cells.values() for pair in itertools.combinations(cell, 2))
        ways: dict[tuple[str, int, str, str, str], list[Measured]] = defaultdict(list)
        for one in sorted(usable, key=depth_of):
            tokens = int(one.case.parameters[test_of(one)])
            ways[model_of(one), tokens, test_of(one), one.setting.id, _where(one)].append(one)
        self._add(((way[0], way[-1]) for way in ways.values()), apart=("depth",))

    def _add(self, pairs: Iterable[tuple[Measured, Measured]], apart: Sequence[str] = ()) -> None:
        new = [(a, b) for a, b in pairs if a is not b and not self._has(a, b)]
        for (a, b), one in zip(new, together([compared(a, b, apart=apart) for a, b in new]), strict=True):
            self._made[id(a), id(b)] = one

    def _has(self, a: Measured, b: Measured) -> bool:
        return (id(a), id(b)) in self._made or (id(b), id(a)) in self._made

    def __call__(self, a: Measured, b: Measured) -> Comparison:
        """Return B against A."""
        return self._made[id(a), id(b)] if (id(a), id(b)) in self._made else self._made[id(b), id(a)].turned


def conclusions(*runs: Iterable[Measured]) -> list[Conclusion]:
    """Return what results of language models say, the answers that people look for first.

    Args:
        runs: Results of each run; of them those count whose parameters have ``model``, ``depth`` and tokens of
            ``prompt`` or ``generate``; ``size_bytes`` allows more.
    """
    whole = [tuple(results) for results in runs]
    usable = _newest(result for results in whole for result in results if test_of(result) and not unusable(result))
    if not usable:
        return []
    judged = Judged([results for results in whole if results], usable)
    found: list[Conclusion] = []
    by_model: dict[str, list[Measured]] = defaultdict(list)
    for result in usable:
        by_model[model_of(result)].append(result)
    for model, mine in by_model.items():
        first: list[Measured] = []
        answers: list[Conclusion] = []
        more: list[Conclusion] = []
        for test in TESTS:
            lengths = by_length(model, [result for result in mine if test_of(result) == test])
            first += next(iter(lengths.values()), [])
            for number, (name, chosen) in enumerate(lengths.items()):
                best = _best(name, test, chosen, judged)
                answers += best[: not number]
                more += best[not number :]
                more += _crossings(name, test, chosen, judged)
                more += _decay(name, test, chosen, judged)
        found += [*answers, *_apart(model, first, judged), *more]
    for test in TESTS:
        found += _size(test, [result for result in usable if test_of(result) == test])
    return found


def _newest(results: Iterable[Measured]) -> list[Measured]:
    """Return the results without repeats: of a case under a setting on a device the newest."""
    found: dict[tuple[str, str, str], Measured] = {}
    for result in sorted(results, key=lambda one: one.started_at):
        found[result.case.id, result.setting.id, _where(result)] = result
    return list(found.values())


def _where(result: Measured) -> str:
    product = result.machine.get("product", "")
    return " ".join(filter(None, (result.subject.device_name, result.subject.gfx_target, product)))


def by_length(model: str, results: Iterable[Measured]) -> dict[str, list[Measured]]:
    """Return the results of one test by what they are called: the model, with the tokens where their number differs."""
    lengths: dict[int, list[Measured]] = defaultdict(list)
    for result in results:
        lengths[int(result.case.parameters[test_of(result)])].append(result)
    several = len(lengths) > 1
    return {f"{model}, {tokens:,} tokens" if several else model: some for tokens, some in lengths.items()}


def test_of(result: Measured) -> str:
    """Return ``prompt`` or ``generate``; nothing where a result is of neither alone."""
    parameters = result.case.parameters
    if result.case.suite == "mlx":
        return _TASKS.get(parameters.get("task", ""), "")
    found = [test for test in TESTS if isinstance(parameters.get(test), int) and parameters[test] > 0]
    return found[0] if len(found) == 1 and "model" in parameters else ""


def depth_of(result: Measured) -> int:
    """Return how many tokens the context holds before."""
    parameters = result.case.parameters
    depth = int(parameters.get("depth", 0))
    after_prompt = result.case.suite == "mlx" and test_of(result) == "generate"
    return depth + int(parameters.get("prompt", 0)) if after_prompt else depth


def model_of(result: Measured) -> str:
    """Return what a result's model is called."""
    if result.case.suite == "mlx":
        return result.case.id.removeprefix("mlx/").rsplit("/", 2)[0]
    return str(result.case.parameters.get("model", ""))


def _name(result: Measured) -> str:
    return subject_of(result.case, result.setting)


def _figure_text(result: Measured) -> str:
    figure = _figure(result)
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.4g}"


def _figure(result: Measured) -> float:
    return result.figure or 0.0


def _by_depth(results: Sequence[Measured]) -> dict[int, list[Measured]]:
    found: dict[int, list[Measured]] = defaultdict(list)
    for result in sorted(results, key=depth_of):
        found[depth_of(result)].append(result)
    return {depth: sorted(some, key=_figure, reverse=True) for depth, some in found.items()}


def _at(depth: int) -> str:
    return f"with {depth:,} tokens in the cache" if depth else "with an empty cache"


def _leads(some: Sequence[Measured], judged: Judged) -> tuple[Measured, Comparison]:
    """Return what is to be said of the highest figure against: the next one, or another that it is not ahead of."""
    made = [(one, judged(one, some[0])) for one in some[1:]]
    rivals = [(one, seen) for one, seen in made if seen.difference not in {Difference.FASTER, Difference.INCOMPARABLE}]
    return (rivals or made)[0]


def _best(model: str, test: str, results: Sequence[Measured], judged: Judged) -> list[Conclusion]:
    """Say which setting is best at the shortest and the longest context."""
    by_depth = _by_depth(results)
    found = []
    for depth in dict.fromkeys([*list(by_depth)[:1], *list(by_depth)[-1:]]):
        some = by_depth[depth]
        if len(some) < 2:
            continue
        first = some[0]
        second, seen = _leads(some, judged)
        unit = first.case.unit
        shown = seen.difference is Difference.FASTER
        figures = f"({_figure_text(first)} and {_figure_text(second)} {unit})"
        if shown:
            said = f"{first.setting.id} is the fastest: {_figure_text(first)} {unit}, {_ahead(first, second)}"
        elif seen.difference is not Difference.INCOMPARABLE:
            said = f"no difference is shown between {first.setting.id} and {second.setting.id} {figures}{_why(seen)}"
        elif seen.ratio is not None:
            said = (
                f"{first.setting.id} has the highest figure: {_figure_text(first)} {unit}, {_ahead(first, second)}; "
                f"{_SINGLE}"
            )
        else:
            said = f"{first.setting.id} and {second.setting.id} can't be compared {figures}{_why(seen)}"
        text = f"{model}: for {TESTS[test]} {_at(depth)}, {said}."
        found.append(Conclusion("best", text, (_name(first), _name(second)), shown))
    return found


def _ahead(first: Measured, second: Measured) -> str:
    return f"{(_figure(first) / _figure(second) - 1) * 100:.0f} % ahead of {second.setting.id}"


def _why(seen: Comparison) -> str:
    return f": {seen.reason}" if seen.reason else ""


def _apart(model: str, results: Sequence[Measured], judged: Judged) -> list[Conclusion]:
    """Say that the best setting for prompts is not the best one for generation, where that is shown."""
    best: dict[str, Measured] = {}
    for test in TESTS:
        by_depth = _by_depth([result for result in results if test_of(result) == test])
        some = next(iter(by_depth.values()), [])
        if len(some) < 2 or _leads(some, judged)[1].difference is not Difference.FASTER:
            return []
        best[test] = some[0]
    prompt, generate = best["prompt"], best["generate"]
    if prompt.setting.id == generate.setting.id:
        return []
    text = (
        f"{model}: the best setting for prompts ({prompt.setting.id}) is not the best one for generation "
        f"({generate.setting.id}): choose by what you do more of."
    )
    return [Conclusion("best", text, (_name(prompt), _name(generate)))]


def _crossings(model: str, test: str, results: Sequence[Measured], judged: Judged) -> list[Conclusion]:
    """Say between which depths one setting overtakes another."""
    by_setting: dict[str, dict[int, Measured]] = defaultdict(dict)
    for result in results:
        by_setting[result.setting.id][depth_of(result)] = result
    found = []
    for (one, first), (other, second) in itertools.combinations(by_setting.items(), 2):
        ahead: tuple[int, str] | None = None
        for depth in sorted(first.keys() & second.keys()):
            seen = judged(first[depth], second[depth]).difference
            if seen not in {Difference.FASTER, Difference.SLOWER}:
                continue
            leader, behind = (other, one) if seen is Difference.FASTER else (one, other)
            if ahead is not None and ahead[1] != leader:
                text = (
                    f"{model}: for {TESTS[test]}, {leader} overtakes {behind} between {ahead[0]:,} and {depth:,} "
                    "tokens in the cache."
                )
                rests = (first[ahead[0]], second[ahead[0]], first[depth], second[depth])
                found.append(Conclusion("crossing", text, tuple(map(_name, rests))))
            ahead = depth, leader
    return found


def _decay(model: str, test: str, results: Sequence[Measured], judged: Judged) -> list[Conclusion]:
    """Say how fast a setting gets slower with the context: the time of a token grows by a straight line."""
    found = []
    for setting, some in _by_setting(results).items():
        depths = {depth_of(result) for result in some}
        if len(depths) < _FEWEST_POINTS:
            continue
        found.append(_decay_of(model, test, setting, some, judged(some[0], some[-1])))
    return found


def _by_setting(results: Iterable[Measured]) -> dict[str, list[Measured]]:
    """Return the results of each setting, the shortest context first; those of another device are of another one."""
    found: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for result in sorted(results, key=depth_of):
        found[result.setting.id, _where(result)].append(result)
    several = Counter(setting for setting, _ in found)
    return {f"{one} on {where}" if several[one] > 1 else one: some for (one, where), some in found.items()}


def _decay_of(model: str, test: str, setting: str, some: Sequence[Measured], seen: Comparison) -> Conclusion:
    low, high = some[0], some[-1]
    names = tuple(map(_name, some))
    about = f"{model}: {TESTS[test]} with {setting}"
    ends = f"{depth_of(high):,} tokens than at {depth_of(low):,}"
    single = seen.difference is Difference.INCOMPARABLE and seen.ratio is not None
    if seen.difference in {Difference.NONE, Difference.INCOMPARABLE} and not single:
        text = f"{about}: it is not shown that it is slower at {ends}{_why(seen)}."
        return Conclusion("decay", text, names, shown=False)
    change = (_figure(high) / _figure(low) - 1) * 100
    text = f"{about} is {abs(change):.0f} % {'slower' if change < 0 else 'faster'} at {ends}"
    text += f" ({_figure_text(low)} and {_figure_text(high)} {low.case.unit}; {_SINGLE})" if single else ""
    line = fit([(float(depth_of(result)), 1 / _figure(result)) for result in some])
    if line.slope > 0 and line.start > 0 and line.residual < _STRAIGHT:
        doubles = _rounded(line.start / line.slope)
        text += (
            f"; the time of a token grows in a straight line, within {_within(line)}, and doubles after "
            f"{doubles:,} tokens."
        )
    else:
        text += f"; a straight line does not describe it (a point is {share_text(line.residual)} away)."
    return Conclusion("decay", text, names, shown=not single)


def _within(line: Line) -> str:
    return share_text(max(line.residual, 0.001))


def _rounded(value: float) -> int:
    """Return a number with two significant digits."""
    if value <= 0:
        return 0
    step = int(10 ** max(0, math.floor(math.log10(value)) - 1))
    return round(value / step) * step


def _size(test: str, results: Sequence[Measured]) -> list[Conclusion]:
    """Say how the time of a token follows the size of the model, and what bandwidth that comes to."""
    found = []
    sized = [result for result in results if result.case.parameters.get("size_bytes")]
    for setting, mine in _by_setting(sized).items():
        models: dict[str, Measured] = {}
        for result in mine:
            models.setdefault(str(result.case.parameters.get("model", "")), result)
        some = sorted(models.values(), key=lambda result: float(result.case.parameters["size_bytes"]))
        if len({float(result.case.parameters["size_bytes"]) for result in some}) < _FEWEST_POINTS:
            continue
        line = fit([(float(result.case.parameters["size_bytes"]), 1 / _figure(result)) for result in some])
        if line.slope <= 0 or line.residual > 0.25:
            text = (
                f"{TESTS[test].capitalize()} with {setting}: the time of a token does not follow the model's size by a "
                f"straight line (a point is {share_text(line.residual)} away)."
            )
            found.append(Conclusion("size", text, tuple(map(_name, some)), shown=False))
            continue
        text = (
            f"{TESTS[test].capitalize()} with {setting}: smaller is faster. The time of a token follows the size of "
            f"the model in a straight line, within {_within(line)}"
        )
        text += f": {1 / line.slope / 1e9:,.3g} GB of weights a second." if test == "generate" else "."
        found.append(Conclusion("size", text, tuple(map(_name, some))))
    return found
