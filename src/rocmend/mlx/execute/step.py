"""One call of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Step", "freeing"]


@dataclass(slots=True)
class Step:
    """One call of a plan.

    Attributes:
        call: ``call(nodes, *tensors) -> tensor``, or a tuple of tensors where ``outs`` has several places.
        ins: places of its inputs: a node's place, or the number of nodes plus the place of a link from outside.
        outs: places of the nodes that it computes.
        free: places not needed any more afterwards.
        merged: what it does, as operations of a chain, where several nodes are one step already.
        rule: of several nodes in one step: ``rule(nodes, integers)`` returns the call that reads changing integers from
            device memory, ``integers(place)`` those of a node: numbers, or where they change, their places there.
            It raises ``Unfit`` where there is no such form.
        kernel: what a pattern put in place that a later one may join: the kernels' function and its options.
    """

    call: Callable[..., Any]
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    free: tuple[int, ...] = ()
    merged: Any = None
    rule: Any = None
    kernel: tuple[str, Any] | None = None


def freeing(steps: Sequence[Step], kept: Iterable[int]) -> list[Step]:
    """Say of each step which values nothing needs afterwards.

    Args:
        steps: in order; what they free is written anew.
        kept: places that are needed for good.
    """
    known = set(kept)
    for step in reversed(steps):
        free = [place for place in dict.fromkeys((*step.ins, *step.outs)) if place not in known]
        known.update(free)
        step.free = tuple(free)
    return list(steps)
