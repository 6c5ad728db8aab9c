"""Slices and what is written to them: starts and ends may change from step to step with one structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__: list[str] = []

_slice = slice

Ints = tuple[int, ...]


def _places(node: Node) -> tuple[slice, ...]:
    strides = node.attrs if node.op is SLICE else node.attrs[0]
    dyn: Any = node.dyn
    ndim = len(strides)
    return tuple([_slice(dyn[i], dyn[ndim + i], strides[i]) for i in range(ndim)])


# attrs: strides, all positive; dyn: starts and stops, inside of the input and starts <= stops
SLICE = Primitive("Slice", lambda node, x: x[_places(node)], view=True)


class _Ones(dict[int, Ints]):
    def __missing__(self, ndim: int) -> Ints:
        found = self[ndim] = (1,) * ndim
        return found


ones = _Ones()


def sliced(x: array, starts: Ints, stops: Ints, strides: Ints, stream: Any = None) -> array:
    """Record a slice of positive strides and of bounds inside of ``x``; the same node where nothing changes."""
    node = x._n
    shape = tuple([(stop - start + step - 1) // step for start, stop, step in zip(starts, stops, strides, strict=True)])
    if shape == node.shape:
        return wrap(node)
    return record(SLICE, (node,), shape, node.dtype, strides, starts + stops, stream)


def cut(x: array, axis: int, start: int, stop: int, stream: Any = None) -> array:
    """Record ``x[..., start:stop, ...]`` of one axis; bounds lie inside of it."""
    node = x._n
    shape = node.shape
    if start == 0 and stop == shape[axis]:
        return wrap(node)
    ndim = len(shape)
    starts = [0] * ndim
    stops = list(shape)
    starts[axis] = start
    stops[axis] = stop
    out = (*shape[:axis], stop - start, *shape[axis + 1 :])
    return record(SLICE, (node,), out, node.dtype, ones[ndim], (*starts, *stops), stream)


def _bounds(node: Any, strides: Ints) -> tuple[Ints, Ints]:
    ndim = len(strides)
    return node.dyn[:ndim], node.dyn[ndim:]


@SLICE.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    zeros = ops.zeros(primals[0]._n.shape, cotangent._n.dtype)
    return (updated(zeros, cotangent, *_bounds(node, node.attrs), node.attrs),)


@SLICE.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return sliced(tangents[0], *_bounds(node, node.attrs), node.attrs)


@SLICE.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    starts, stops = _bounds(node, node.attrs)
    if axis is None:
        return sliced(x, starts, stops, node.attrs), None
    x = moveaxis(x, axis, 0)
    return sliced(x, (0, *starts), (x._n.shape[0], *stops), (1, *node.attrs)), 0


def _update(node: Node, x: torch.Tensor, update: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    out[_places(node)] = update
    return out


# attrs: strides as for Slice, and what is done: "assign" (other joins are composed: see ``index_at``)
SLICE_UPDATE = Primitive("SliceUpdate", _update)


def updated(x: array, update: array, starts: Ints, stops: Ints, strides: Ints, stream: Any = None) -> array:
    """Record ``x`` with ``x[starts:stops:strides] = update``, of exactly that shape and the type of ``x``."""
    node = x._n
    if update._n.shape == node.shape:
        return wrap(update._n)
    return record(SLICE_UPDATE, (node, update._n), node.shape, node.dtype, (strides, "assign"), starts + stops, stream)


@SLICE_UPDATE.rule("vjp")
def _update_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    strides = node.attrs[0]
    starts, stops = _bounds(node, strides)
    nothing = broadcast(ops.zeros((), cotangent._n.dtype), primals[1]._n.shape)
    return updated(cotangent, nothing, starts, stops, strides), sliced(cotangent, starts, stops, strides)


@SLICE_UPDATE.rule("jvp")
def _update_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, update = [ops.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    strides = node.attrs[0]
    return updated(x, update, *_bounds(node, strides), strides)


@SLICE_UPDATE.rule("vmap")
def _update_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    strides = node.attrs[0]
    starts, stops = _bounds(node, strides)
    x, update = batched(arrays, axes)
    return updated(x, update, (0, *starts), (x._n.shape[0], *stops), (1, *strides)), 0


def batched(arrays: Any, axes: Any) -> list[array]:
    """Return arrays with their batch in front: moved there, or repeated where there is none."""
    size = next(x._n.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
    return [
        broadcast(x, (size, *x._n.shape)) if axis is None else moveaxis(x, axis, 0)
        for x, axis in zip(arrays, axes, strict=True)
    ]
