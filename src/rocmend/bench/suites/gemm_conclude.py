"""What figures of matrix products say: which setting is faster for which kind of product, and which one to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rocmend.bench.case import Setting
from rocmend.bench.comparison import Overall, compared, overall, unusable
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.records import Measured, subject_of
from rocmend.bench.stats import MARGIN, Comparison, Difference
from rocmend.bench.suite import Bound
from rocmend.bench.suites.gemm_cases import FASTEST, PEAK, group_of, short_dtype
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
    whole = overall(one for one, _ in found)
    if whole is None:
        return None
    results = tuple(other for _, (_, other) in found)
    return _Pooled(results[0].setting, whole, tuple(one for one, _ in found), results)


def conclusions(results: Sequence[Measured]) -> list[Conclusion]:
    """Return what to use, what each setting does to each kind of product, and how fast each dtype gets."""
    timed = [result for result in results if not unusable(result)]
    names = list(dict.fromkeys(result.setting.id for result in results))
    several = len({result.case.parameters["dtype"] for result in timed}) > 1
    by = {(result.case.id, result.setting.id): result for result in timed}
    pairs: dict[tuple[str, str], list[tuple[Measured, Measured]]] = {}
    for (case, setting), other in by.items():
        if setting != names[0] and (case, names[0]) in by:
            kind = f"{short_dtype(other.case)} {group_of(other.case)}" if several else group_of(other.case)
            pairs.setdefault((setting, kind), []).append((by[case, names[0]], other))
    found = {key: one for key, many in pairs.items() if (one := _pooled(many)) is not None}
    said = []
    for name in names[1:]:
        mine = {kind: one for (setting, kind), one in found.items() if setting == name}
        if mine:
            said.append(_said(name, mine, names[0]))
    return [*([_use(found, names[0])] if found else []), *said, *_ceilings(timed)]


def _ceilings(timed: Sequence[Measured]) -> list[Conclusion]:
    """Say for each dtype how fast it gets, and how many of its products memory bounds."""
    made = []
    for dtype in dict.fromkeys(short_dtype(result.case) for result in timed):
        mine = [result for result in timed if short_dtype(result.case) == dtype]
        best = max(mine, key=lambda result: result.figure or 0.0)
        peak = next((bound for bound in best.bounds if bound.name == PEAK), None)
        share = f", {_percent(best, peak)} of the {PEAK}" if peak else ""
        text = (
            f"{dtype}: {best.figure or 0:.4g} {best.case.unit} at most ({best.case.title}, {best.setting.id}{share})."
        )
        by_memory = [result for result in mine if result.bounds and result.bounds[0].name not in {PEAK, FASTEST}]
        if by_memory:
            ordered = sorted(by_memory, key=lambda result: (result.figure or 0.0) / result.bounds[0].figure)
            reach = dict.fromkeys(_percent(one, one.bounds[0]) for one in (ordered[0], ordered[-1]))
            bounded = f"{len(by_memory)} of {count_text(len(mine), 'figure')}"
            text += f" Memory bounds {bounded}: they reach {' to '.join(reach)}."
        made.append(Conclusion("ceiling", text, tuple(subject_of(one.case, one.setting) for one in (best, *by_memory))))
    return made


def _percent(result: Measured, bound: Bound) -> str:
    return f"{(result.figure or 0.0) / bound.figure * 100:.0f} %"


def _use(found: Mapping[tuple[str, str], _Pooled], first: str) -> Conclusion:
    """Say for each kind of product which setting to use: the fastest of those that are shown to be faster."""
    parts, evidence, none = [], [], []
    for kind in dict.fromkeys(kind for _, kind in found):
        many = [one for (_, other), one in found.items() if other == kind]
        faster = [one for one in many if one.whole.difference is Difference.FASTER]
        best = max(faster, key=lambda one: one.whole.ratio, default=None)
        evidence += [subject_of(result.case, result.setting) for one in many for result in one.results]
        if best is None:
            none.append(kind)
        else:
            parts.append(f"For {kind} products use {best.setting.id}, {_interval(best)}: {_how(best.setting)}.")
    if none:
        parts.append(f"For {_listed(none)} products use {first}: no other setting is shown to be faster.")
    return Conclusion("use", " ".join(parts), tuple(evidence), shown=len(parts) > bool(none))


def _how(setting: Setting) -> str:
    parts = [f"{name}={value}" for name, value in setting.env.items() if value is not None]
    return " ".join(parts) if parts else "no variable set"


def _said(name: str, kinds: Mapping[str, _Pooled], first: str) -> Conclusion:
    """Say what a setting does to each kind of product."""
    words, odd, evidence = [], [], []
    for kind, one in kinds.items():
        total = count_text(len(one.each), f"{kind} product")
        shown = one.whole.difference in {Difference.FASTER, Difference.SLOWER}
        counts = [
            f"{word.value} on {one.count(word)}" for word in (Difference.FASTER, Difference.SLOWER) if one.count(word)
        ]
        more = f", {' and '.join(counts)}" if counts else ""
        none = f"no difference above {MARGIN * 100:.0f} % shown {_range(one)}"
        words.append(f"{total} {_interval(one) if shown else none}{more}")
        against = Difference.SLOWER if one.whole.ratio > 1 else Difference.FASTER
        odd += [
            f"{result.case.title or result.case.id} ({made.difference.value})"
            for result, made in zip(one.results, one.each, strict=True)
            if shown and made.difference is against
        ]
        evidence += [subject_of(result.case, result.setting) for result in one.results]
    text = f"{name} against {first}: {'; '.join(words)}."
    if odd:
        more = f" and {len(odd) - _MOST_NAMED} more" if len(odd) > _MOST_NAMED else ""
        text += f" Unlike the others of their kind: {', '.join(odd[:_MOST_NAMED])}{more}."
    shown = any(one.whole.difference is not Difference.NONE for one in kinds.values())
    return Conclusion("setting", text, tuple(evidence), shown=shown)


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
