"""Two measurements compared: whether they may be, and what that shows.

All statements about which of two figures is better come from here: those of tables, of ``compare``, of conclusions, of
reports and of ``check``. Blocks are compared pair by pair only where they were taken in turn in one session.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from rocmend.bench.records import Measured
from rocmend.bench.stats import (
    MARGIN,
    Comparison,
    Difference,
    Interval,
    chance,
    combined,
    compare,
    judged,
    not_by_chance,
)
from rocmend.core.units import share_text

RUNS_MARGIN = 0.02
"""Between two runs more differs than between blocks taken in turn: memory layout, temperature, what else ran."""
BUSY = 0.2
"""A process on the CPU that waits a larger share of its time for a processor measures the others on the machine."""
HELD_DOWN = 0.25
"""Share of the readings in which a GPU was throttled, beyond the other run's, from which on they are not compared."""
_USUAL = {"power limit", "current limit"}
"""What a GPU meets at full load in every run; heat depends on the day."""
_SAME_MACHINE = ("product", "processor")
_MOST_NAMED = 3


class Overall(msgspec.Struct, frozen=True):
    """The geometric mean of the ratios of several cases.

    Attributes:
        ratio: Speed of B over that of A.
        low: Lower end of its 95 % interval, for these cases.
        high: Its upper end.
        cases: How many.
        difference: What it shows.
        freedom: Degrees of freedom of the interval.
        in_turn: The blocks of all cases were taken in turn.
    """

    ratio: float
    low: float
    high: float
    cases: int
    difference: Difference
    freedom: float = 0.0
    in_turn: bool = False


Made = TypeVar("Made", Comparison, Overall)


SIDES = ("the first", "the second")
"""What the two that are compared are called, where nobody has named them."""


def compared(
    a: Measured,
    b: Measured,
    *,
    across: bool = False,
    apart: Sequence[str] = (),
    sides: tuple[str, str] = SIDES,
) -> Comparison:
    """Compare two measurements: B against A.

    Args:
        a: The first.
        b: The second.
        across: Two devices or machines are to be compared.
        apart: Parameters of the case in which they may differ: ``depth`` for what a longer context costs.
        sides: What the two are called in a reason.
    """
    if reason := _incomparable(a, b, across, apart, sides):
        return Comparison(Difference.INCOMPARABLE, reason=reason)
    paired = a.in_turn_with(b)
    margin = _margin(in_turn=paired)
    found = compare(a.blocks, b.blocks, paired=paired, margin=margin)
    if found.difference is Difference.NONE or not (a.waited or b.waited):
        return found
    working = compare(_working(a), _working(b), paired=paired, margin=margin)
    if working.difference is found.difference:
        return found
    reason = "they waited unequally for a processor that others had"
    return msgspec.structs.replace(found, difference=Difference.NONE, reason=reason)


def overall(found: Iterable[Comparison]) -> Overall | None:
    """Return the geometric mean of the ratios of comparisons, with its interval; None where none has both.

    Those that show nothing for a reason of their own (waiting for a processor) do not count.
    """
    counted = [one for one in found if one.low is not None and not one.reason]
    if not counted:
        return None
    mean = combined([_logarithms(one) for one in counted])
    in_turn = all(one.in_turn for one in counted)
    ends = math.exp(mean.middle), math.exp(mean.low), math.exp(mean.high)
    return Overall(*ends, len(counted), judged(mean, _margin(in_turn=in_turn)), mean.freedom, in_turn)


def together(found: Sequence[Made]) -> list[Made]:
    """Return what is compared together, without the differences that chance explains among so many (Holm).

    The intervals stay what they are: each is one of 95 % by itself.
    """
    asked = [index for index, one in enumerate(found) if one.low is not None]
    shown = not_by_chance([chance(_logarithms(found[index]), _margin(in_turn=found[index].in_turn)) for index in asked])
    made = list(found)
    if len(asked) == 1:
        return made  # its interval says it already
    for index, real in zip(asked, shown, strict=True):
        if not real and found[index].difference is not Difference.NONE:
            made[index] = _unshown(found[index], len(asked))
    return made


def _unshown(one: Made, count: int) -> Made:
    """Take the difference back that one of so many comparisons would show by itself."""
    if isinstance(one, Overall):
        return msgspec.structs.replace(one, difference=Difference.NONE)
    reason = f"{one.difference.value} by itself; among {count} comparisons chance can explain it: measure it again"
    return msgspec.structs.replace(one, difference=Difference.NONE, reason=reason)


def _margin(*, in_turn: bool) -> float:
    return MARGIN if in_turn else RUNS_MARGIN


def _logarithms(one: Comparison | Overall) -> Interval:
    assert one.ratio is not None and one.low is not None and one.high is not None  # noqa: S101, PT018  asked before
    return Interval(math.log(one.ratio), math.log(one.low), math.log(one.high), one.freedom)


def _working(item: Measured) -> list[tuple[float, ...]]:
    """Return the times without what was waited for a processor, block by block."""
    shares = item.waited or (0.0,) * len(item.blocks)
    return [
        tuple(seconds * (1 - share) for seconds in block) for block, share in zip(item.blocks, shares, strict=False)
    ]


def unusable(item: Measured) -> str:
    """Say why nothing is said about a figure, whatever it is compared with; empty where something can be."""
    if item.summary is None:
        return f"{item.verdict.value}{f': {item.reason}' if item.reason else ''}"
    return busy_text([share]) if (share := busy_share(item)) else ""


def busy_share(item: Measured) -> float:
    """Return which share of a figure's time went by waiting for a processor; 0 where the figure can be relied on."""
    waited = statistics.fmean(item.waited) if item.summary is not None and item.waited else 0.0
    return waited if waited > BUSY else 0.0


def busy_text(shares: Sequence[float]) -> str:
    """Say that a machine was busy while figures were taken.

    Args:
        shares: Of their times, what went by waiting for a processor.
    """
    least, most = share_text(min(shares)), share_text(max(shares))
    spread = most if least == most else f"{least.removesuffix(' %')} to {most}"
    return f"this machine was busy: {spread} of the time went by waiting for a processor"


def _incomparable(a: Measured, b: Measured, across: bool, apart: Sequence[str], sides: tuple[str, str]) -> str:
    """Say why two measurements can't be compared; empty where they can."""
    if reason := _redefined(a, b, apart) or unusable(a) or unusable(b):
        return reason
    if a.in_turn_with(b):
        return ""  # what differs is what the run compares: back ends, say; heat met both alike
    if not across and (reason := _elsewhere(a, b)):
        return reason
    return _hot(a, b, sides) or _hot(b, a, sides[::-1])


def _redefined(a: Measured, b: Measured, apart: Sequence[str]) -> str:
    """Say in what the two are not the same case."""
    first, second = definition_of(a), definition_of(b)
    differing = [name for name in dict.fromkeys((*first, *second)) if first.get(name) != second.get(name)]
    differing = [name for name in differing if name not in apart]
    if not differing:
        return ""
    named = [f"{name} {_said(first.get(name))}, then {_said(second.get(name))}" for name in differing[:_MOST_NAMED]]
    more = f" and {len(differing) - _MOST_NAMED} more" if len(differing) > _MOST_NAMED else ""
    return f"different definitions: {'; '.join(named)}{more}"


def definition_of(item: Measured) -> dict[str, Any]:
    """Return all that makes a measurement one of this case and not of another: what it computes, in which unit.

    Settings, versions and devices are not in it: they are what is compared.
    """
    whose = item.prepared.detail.get("definition")
    # the package is its definition, and its version a version
    source = {"definition": str(whose).partition(" ")[0]} if whose else {}
    case = item.case
    return {**case.parameters, **source, "unit": case.unit, "work": case.work}


def _said(value: Any) -> str:
    return "not given" if value is None else str(value)[:60]


def _elsewhere(a: Measured, b: Measured) -> str:
    devices = [item.subject.named for item in (a, b)]
    if devices[0] != devices[1]:
        return f"other device: {devices[0] or 'not known'}, then {devices[1] or 'not known'}"
    for name in _SAME_MACHINE:
        first, second = a.machine.get(name, ""), b.machine.get(name, "")
        if first and second and first != second:
            return f"other machine: {first}, then {second}"
    return ""


def _hot(one: Measured, other: Measured, sides: tuple[str, str]) -> str:
    """Say by what one was held down more than the other."""
    shares, others = (item.telemetry.get("throttle") or {} for item in (one, other))
    for reason, share in shares.items():
        if reason not in _USUAL and share > others.get(reason, 0.0) + HELD_DOWN:
            less = others.get(reason, 0.0)
            more = f"{sides[0]} was throttled by {reason} in {share_text(share)} of the readings"
            return f"{more}, {sides[1]} in {share_text(less)}"
    return ""
