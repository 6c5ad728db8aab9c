"""What figures of matrix products say: which setting is faster for which kind of product, and which one to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rocmend.bench.case import Setting
from rocmend.bench.compare import Overall, compared, overall
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import Measured, subject_of
from rocmend.bench.stats import Comparison, Difference
from rocmend.bench.suites.gemm_cases import PEAK, group_of, short_dtype
from rocmend.core.units import count_text

_MOST_NAMED = 3
_WHOLE = 10
"""Per cent from which on no digit after the point is written."""


class _Pooled(msgspec.Struct, frozen=True):
    """A setting against the first one, over several cases.

    Attributes:
        setting: The setting.
        whole: Over all cases.
        each: The comparisons, by case.
        results: The setting's results, in the same order.
    """

    setting: Setting
    whole: Overall
    each: tuple[Comparison, ...]
    results: tuple[Measured, ...]

    def count(self, kind: Difference) -> int:
        """Return in how many cases the comparison says so."""
        return sum(one.difference is kind for one in self.each)


def _pooled(pairs: Sequence[tuple[Measured, Measured]]) -> _Pooled | None:
    """Compare a setting with the first one; None where no case can be compared."""
    found = [(one, pair) for pair in pairs if (one := compared(*pair)).low is not None]
    whole = overall([pair for _, pair in found])
    if whole is None:
        return None
    results = tuple(other for _, (_, other) in found)
    return _Pooled(results[0].setting, whole, tuple(one for one, _ in found), results)


def conclusions(results: Sequence[Measured]) -> list[Conclusion]:
    """Return what to use, then what each setting does to each kind of product."""
    timed = [result for result in results if result.summary is not None]
    names = list(dict.fromkeys(result.setting.id for result in results))
    several = len({result.case.parameters["dtype"] for result in timed}) > 1
    groups: dict[str, list[_Pooled]] = {}
    by = {(result.case.id, result.setting.id): result for result in timed}
    for name in names[1:]:
        kinds: dict[str, list[tuple[Measured, Measured]]] = {}
        for (case, setting), other in by.items():
            if setting == name and (case, names[0]) in by:
                kind = f"{short_dtype(other.case)} {group_of(other.case)}" if several else group_of(other.case)
                kinds.setdefault(kind, []).append((by[case, names[0]], other))
        for kind, pairs in kinds.items():
            if (found := _pooled(pairs)) is not None:
                groups.setdefault(kind, []).append(found)
    said = [_said(one, kind, names[0]) for kind, many in groups.items() for one in many]
    return [*_uses(groups, names[0]), *said, *_ceilings(timed)]


def _ceilings(timed: Sequence[Measured]) -> list[Conclusion]:
    """Say for each dtype how fast it gets, and how many of its products memory bounds."""
    made = []
    for dtype in dict.fromkeys(short_dtype(result.case) for result in timed):
        mine = [result for result in timed if short_dtype(result.case) == dtype]
        best = max(mine, key=lambda result: result.figure or 0.0)
        peak = next((bound for bound in best.bounds if bound.name == PEAK), None)
        share = f", {(best.figure or 0) / peak.figure:.0%} of the {PEAK}" if peak else ""
        text = (
            f"{dtype}: {best.figure or 0:.4g} {best.case.unit} at most ({best.case.title}, {best.setting.id}{share})."
        )
        by_memory = [result for result in mine if result.bounds and result.bounds[0].name != PEAK]
        if by_memory:
            shares = sorted((result.figure or 0.0) / result.bounds[0].figure for result in by_memory)
            reach = f"{shares[0]:.0%} to {shares[-1]:.0%}" if len(shares) > 1 else f"{shares[0]:.0%}"
            text += f" Memory bounds {len(by_memory)} of {count_text(len(mine), 'figure')}: they reach {reach} of it."
        made.append(Conclusion("ceiling", text, tuple(subject_of(one.case, one.setting) for one in (best, *by_memory))))
    return made


def _uses(groups: Mapping[str, Sequence[_Pooled]], first: str) -> list[Conclusion]:
    best: dict[str, list[tuple[str, _Pooled]]] = {}
    for kind, many in groups.items():
        faster = [one for one in many if one.whole.difference is Difference.FASTER]
        top = max(faster, key=lambda one: one.whole.ratio, default=None)
        best.setdefault(top.setting.id if top else "", []).extend([(kind, top)] if top else [(kind, many[0])])
    made = []
    for name, kinds in best.items():
        evidence = [subject_of(result.case, result.setting) for _, one in kinds for result in one.results]
        what = _listed([kind for kind, _ in kinds])
        if not name:
            text = f"For {what} products no setting is shown to be faster than {first} overall: use {first}."
            made.append(Conclusion("use", text, tuple(evidence), shown=False))
            continue
        gains = ", ".join(f"{kind} {_interval(one)}" for kind, one in kinds)
        text = f"For {what} products use {name} ({gains} than {first}): {_how(kinds[0][1].setting)}."
        made.append(Conclusion("use", text, tuple(evidence)))
    return sorted(made, key=lambda one: not one.shown)


def _how(setting: Setting) -> str:
    parts = [f"{name}={value}" for name, value in setting.env.items() if value is not None]
    return " ".join(parts) if parts else "no variable set"


def _said(one: _Pooled, kind: str, first: str) -> Conclusion:
    total = len(one.each)
    counts = [
        f"{word} {one.count(difference)}"
        for difference, word in (
            (Difference.SLOWER, "slower on"),
            (Difference.FASTER, "faster on"),
            (Difference.NONE, "no difference shown on"),
        )
    ]
    shown = one.whole.difference in {Difference.FASTER, Difference.SLOWER}
    what = _interval(one) + f" than {first}" if shown else f"no difference to {first} is shown {_range(one)}"
    text = f"{one.setting.id}, {count_text(total, f'{kind} product')}: {what}; {', '.join(counts)}."
    against = Difference.SLOWER if one.whole.ratio > 1 else Difference.FASTER
    odd = [result.case.title or result.case.id for result, found in zip(one.results, one.each, strict=True)
           if found.difference is against]  # fmt: skip
    if odd and shown:
        more = f" and {len(odd) - _MOST_NAMED} more" if len(odd) > _MOST_NAMED else ""
        text += f" {against.value.capitalize()}: {', '.join(odd[:_MOST_NAMED])}{more}."
    evidence = tuple(subject_of(result.case, result.setting) for result in one.results)
    return Conclusion("setting", text, evidence, shown=shown)


def _interval(one: _Pooled) -> str:
    """Return ``12 % slower (95 % interval 9 to 14 %)``."""
    whole = one.whole
    word = "faster" if whole.ratio > 1 else "slower"
    ends = sorted(abs(end - 1) * 100 for end in (whole.low, whole.high))
    digits = 0 if ends[1] >= _WHOLE else 1
    text = f"{abs(whole.ratio - 1) * 100:.{digits}f} % {word}"
    return f"{text} (95 % interval {ends[0]:.{digits}f} to {ends[1]:.{digits}f} %)"


def _range(one: _Pooled) -> str:
    return f"(95 % interval {(one.whole.low - 1) * 100:+.1f} to {(one.whole.high - 1) * 100:+.1f} %)"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
