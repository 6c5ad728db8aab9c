"""Operations that read a changing integer from device memory instead of from the program.

``RULES[name](node, integers, in_place)`` returns the call of such an operation: ``integers`` are the node's changing
integers, each a number or, where it changes, its place in device memory. A rule raises ``Unfit`` where there is no such
form. A slice whose end changes becomes a ``Prefix``, which only attention to a cache takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning.config import Config

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["RULES", "Prefix", "Unfit", "write_slice"]

Call = Callable[..., Any]
Rule = Callable[[Any, tuple[Any, ...], bool], Call]

RULES: dict[str, Rule] = {}
_COPY = Config({"BLOCK": 1024, "num_warps": 4})


class Unfit(Exception):  # noqa: N818 a reason, not a failure
    """A step cannot be captured, and why."""


class Prefix:
    """The first elements of a buffer along an axis, as many as an integer in device memory says."""

    __slots__ = ("axis", "length", "whole")

    def __init__(self, whole: torch.Tensor, axis: int, length: torch.Tensor) -> None:
        self.whole = whole
        self.axis = axis
        self.length = length


def rule(name: str) -> Callable[[Rule], Rule]:
    """Decorate the rule of a primitive."""

    def keep(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return keep


def write_slice(into: torch.Tensor, update: torch.Tensor, axis: int, start: torch.Tensor) -> None:
    """Write ``update`` into ``into`` along an axis, from ``start`` in device memory on.

    Args:
        into: up to four axes; every other axis is as long as update's.
        update: what is written; of the same type.
        axis: along which the start is counted.
        start: int32, of shape ``(1,)``. It is not checked: the program's own bounds hold.
    """
    from rocmend.mlx.execute.kernels import write_slice as kernel

    total = update.numel()
    if not total:
        return
    wide = 4 - update.dim()
    sizes = (*(1,) * wide, *update.shape)
    to, of = (*(0,) * wide, *into.stride()), (*(0,) * wide, *update.stride())
    launch(
        kernel, (cdiv(total, _COPY["BLOCK"]),),
        (into, update, start, *sizes[1:], total, *to, *of, into.stride(axis)), {}, _COPY,
    )  # fmt: skip


@rule("Slice")
def _slice(node: Node, integers: tuple[Any, ...], _: bool) -> Call:
    rank = len(node.attrs)
    starts, stops = integers[:rank], list(integers[rank:])
    moving = [k for k, stop in enumerate(stops) if isinstance(stop, torch.Tensor)]
    if len(moving) != 1 or any(isinstance(start, torch.Tensor) for start in starts):
        raise Unfit("the start of a slice changes from step to step")
    axis = moving[0]
    if starts[axis] != 0 or node.attrs[axis] != 1:
        raise Unfit("the end of a slice that does not begin at 0 changes from step to step")
    length, stops[axis] = stops[axis], None
    places = tuple([slice(a, b, s) for a, b, s in zip(starts, stops, node.attrs, strict=True)])
    return lambda _nodes, x: Prefix(x[places], axis, length)


@rule("SliceUpdate")
def _update(node: Node, integers: tuple[Any, ...], in_place: bool) -> Call:
    strides, mode = node.attrs
    rank = len(strides)
    axes = {k % rank for k, value in enumerate(integers) if isinstance(value, torch.Tensor)}
    if mode != "assign" or len(axes) != 1 or rank > 4 or any(stride != 1 for stride in strides):
        raise Unfit("the place of a slice update of this kind changes from step to step")
    axis = axes.pop()
    start = integers[axis]
    if not isinstance(start, torch.Tensor) or not isinstance(integers[rank + axis], torch.Tensor):
        raise Unfit("the length of a slice update changes from step to step")
    places = [slice(a, b) for a, b in zip(integers[:rank], integers[rank:], strict=True)]
    places[axis] = slice(None)

    def call(_nodes: list[Node], into: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
        out = into if in_place else into.clone()
        write_slice(out[tuple(places)], update, axis, start)
        return out

    return call


@rule("RoPE")
def _rope(node: Node, integers: tuple[Any, ...], _: bool) -> Call:
    dims, traditional, base, scale, of_array, has_freqs, inverse = node.attrs
    if of_array:
        raise Unfit("a rotation of given places has no changing integer")
    run = kernels.rope_backward if inverse else kernels.rope

    def call(_nodes: list[Node], x: torch.Tensor, *rest: torch.Tensor) -> Any:
        freqs = rest[-1] if has_freqs else None
        return run(x, dims, traditional=traditional, base=base, scale=scale, offset=integers[0], freqs=freqs)

    return call


@rule("ScaledDotProductAttention")
def _attention(node: Node, _: tuple[Any, ...], __: bool) -> Call:
    scale, kind, has_sinks = node.attrs
    if kind != "none" or node.shape[2] != 1:
        raise Unfit("attention of several queries, or with a mask, to a cache that grows from step to step")
    lengths: list[torch.Tensor] = []

    def call(_nodes: list[Node], q: torch.Tensor, k: Any, v: Any, *rest: torch.Tensor) -> Any:
        if not isinstance(k, Prefix) or not isinstance(v, Prefix) or k.axis != 2 or v.axis != 2:
            raise Unfit("attention to keys and values of which only one grows, or along another axis")
        if k.length.data_ptr() != v.length.data_ptr():
            raise Unfit("attention to keys and values that grow apart")
        lengths.append(k.length.expand(q.shape[0]).contiguous())
        sinks = rest[-1] if has_sinks else None
        return kernels.attention_decode(q, k.whole, v.whole, scale=scale, sinks=sinks, lengths=lengths[-1])

    return call
