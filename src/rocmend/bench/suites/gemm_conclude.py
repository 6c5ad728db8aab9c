"""What figures of matrix products say: which setting is faster for which kind of product, and which one to use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rocmend.bench.case import Setting
from rocmend.bench.comparison import Overall, compared, overall, together, unusable
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


def _pooled(
    pairs: Mapping[tuple[str, str], Sequence[tuple[Measured, Measured]]],
) -> dict[tuple[str, str], _Pooled]:
    """Compare settings with the first one, by setting and kind of product: all that can be compared, made together."""
    flat = [(key, other, one) for key, many in pairs.items() for a, other in many if (one := compared(a, other)).low]
    each = together([one for _, _, one in flat])
    kinds = dict.fromkeys(key for key, _, _ in flat)
    wholes = {kind: overall(one for key, _, one in flat if key == kind) for kind in kinds}
    made = {kind: whole for kind, whole in wholes.items() if whole is not None}
    found = {}
    for kind, whole in zip(made, together(list(made.values())), strict=True):
        mine = [(other, one) for (key, other, _), one in zip(flat, each, strict=True) if key == kind]
        results = tuple(other for other, _ in mine)
        found[kind] = _Pooled(results[0].setting, whole, tuple(one for _, one in mine), results)
    return found


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
    found = _pooled(pairs)
    said = []
    for name in names[1:]:
        mine = {kind: one for (setting, kind), one in found.items() if setting == name}
        if mine:
            said.append(_said(name, mine, names[0]))
    return [*_use(found, names[0]), *said, *_ceilings(timed, results)]


def _ceilings(timed: Sequence[Measured], results: Sequence[Measured]) -> list[Conclusion]:
    """Say for each dtype how fast it gets, and how many of its products memory bounds."""
    made = []
    for dtype in dict.fromkeys(short_dtype(result.case) for result in timed):
        mine = [result for result in timed if short_dtype(result.case) == dtype]
        best = max(mine, key=lambda result: result.figure or 0.0)
        peak = next((bound for bound in best.bounds if bound.name == PEAK), None)
        share = f", {_percent(best, peak)} of the {PEAK}" if peak else ""
        ran = sum(result.figure is not None and short_dtype(result.case) == dtype for result in results)
        of = "" if ran == len(mine) else f"; of {ran} figures {len(mine)} can be relied on"
        about = f"{best.case.title}, {best.setting.id}{share}{of}"
        text = f"{dtype}: {best.figure or 0:.4g} {best.case.unit} at most ({about})."
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


def _use(found: Mapping[tuple[str, str], _Pooled], first: str) -> list[Conclusion]:
    """Say which setting to use for which kinds of product: the fastest of those that are shown to be faster."""
    gains: dict[str, list[str]] = {}
    evidence: dict[str, list[str]] = {}
    variables = {}
    for kind in dict.fromkeys(kind for _, kind in found):
        many = [one for (_, other), one in found.items() if other == kind]
        faster = [one for one in many if one.whole.difference is Difference.FASTER]
        best = max(faster, key=lambda one: one.whole.ratio, default=None)
        name = best.setting.id if best else first
        gains.setdefault(name, []).append(f"{_change(best)} for {kind}" if best else kind)
        evidence.setdefault(name, []).extend(
            subject_of(result.case, result.setting) for one in many for result in one.results
        )
        variables[name] = f" ({_how(best.setting)})" if best else ""
    return [
        Conclusion(
            "use",
            f"Use {name}{variables[name]}: {_listed(kinds)} products."
            if name != first
            else f"Use {first} for {_listed(kinds)} products: no other setting is shown to be faster.",
            tuple(evidence[name]),
            shown=name != first,
        )
        for name, kinds in sorted(gains.items(), key=lambda item: item[0] == first)
    ]


def _how(setting: Setting) -> str:
    parts = [f"{name}={value}" for name, value in setting.env.items() if value is not None]
    return " ".join(parts) if parts else "no variable set"


def _said(name: str, kinds: Mapping[str, _Pooled], first: str) -> Conclusion:
    """Say what a setting does to each kind of product."""
    words, odd, evidence = [], [], []
    for kind, one in kinds.items():
        shown = one.whole.difference in {Difference.FASTER, Difference.SLOWER}
        none = f"no difference above {MARGIN * 100:.0f} % shown"
        words.append(f"{kind} {_change(one) if shown else none} ({_ends(one)}, {_counts(one)})")
        against = Difference.SLOWER if one.whole.ratio > 1 else Difference.FASTER
        odd += [
            f"{result.case.title or result.case.id} ({made.difference.value})"
            for result, made in zip(one.results, one.each, strict=True)
            if shown and made.difference is against
        ]
        evidence += [subject_of(result.case, result.setting) for result in one.results]
    text = f"{name} against {first}, with 95 % intervals: {'; '.join(words)}."
    if odd:
        more = f" and {len(odd) - _MOST_NAMED} more" if len(odd) > _MOST_NAMED else ""
        text += f" Unlike the others of their kind: {', '.join(odd[:_MOST_NAMED])}{more}."
    shown = any(one.whole.difference is not Difference.NONE for one in kinds.values())
    return Conclusion("setting", text, tuple(evidence), shown=shown)


def _counts(one: _Pooled) -> str:
    """Return how many products there are; where they do not all agree with the whole, how many came out how."""
    total = count_text(len(one.each), "product")
    kinds = (Difference.FASTER, Difference.SLOWER)
    counts = [f"{kind.value} on {one.count(kind)}" for kind in kinds if one.count(kind)]
    agree = one.count(one.whole.difference) == len(one.each)
    return total if agree or not counts else f"{' and '.join(counts)} of {total}"


def _change(one: _Pooled) -> str:
    """Return ``12 % slower``."""
    change = (one.whole.ratio - 1) * 100
    return f"{abs(change):.{0 if abs(change) >= _WHOLE else 1}f} % {'faster' if change > 0 else 'slower'}"


def _ends(one: _Pooled) -> str:
    """Return the ends of the interval, ``9 to 14 %``: of the change where one is shown, else of the difference."""
    whole = one.whole
    if whole.difference not in {Difference.FASTER, Difference.SLOWER}:
        return f"{(whole.low - 1) * 100:+.1f} to {(whole.high - 1) * 100:+.1f} %"
    low, high = sorted(abs(end - 1) * 100 for end in (whole.low, whole.high))
    digits = 0 if high >= _WHOLE and round(low) != round(high) else 1
    return f"{low:.{digits}f} to {high:.{digits}f} %"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
