"""What steps do that were made of several where a tape turns out not to be as the one that they were made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.execute.step import Step

__all__ = ["one_by_one"]


def one_by_one(parts: Sequence[Step], ins: Sequence[int], outs: Sequence[int]) -> Callable[..., Any]:
    """Return a call that computes steps one after another: a plan holds for other shapes and integers too.

    Args:
        parts: the steps, in order; each has one output.
        ins: places of what the call is given.
        outs: places of what it returns.
    """

    def call(nodes: Any, *tensors: Any) -> Any:
        values = dict(zip(ins, tensors, strict=True))
        for part in parts:
            values[part.outs[0]] = part.call(nodes, *[values[place] for place in part.ins])
        found = tuple([values[place] for place in outs])
        return found[0] if len(found) == 1 else found

    return call
