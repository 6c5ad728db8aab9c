"""Elements around an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.ops.gather import gathered
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import cut, ones, sliced
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__ = ["pad"]


def _pad(node: Node, x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    low, high = node.attrs
    sizes = [size + a + b for size, a, b in zip(x.shape, low, high, strict=True)]
    out = value.expand(sizes).contiguous()
    out = out.clone() if out.data_ptr() == value.data_ptr() else out
    out[tuple([slice(a, a + size) for size, a in zip(x.shape, low, strict=True)])] = x
    return out


# inputs: x and a scalar; attrs: how many elements stand in front of each axis, and how many behind
PAD = Primitive("Pad", _pad)

_Ints = tuple[int, ...]


def _padded(x: array, value: array, low: _Ints, high: _Ints, stream: Any = None) -> array:
    node = x._n
    shape = tuple([size + a + b for size, a, b in zip(node.shape, low, high, strict=True)])
    return record(PAD, (node, value._n), shape, node.dtype, (low, high), None, stream)


def _inner(x: array, shape: _Ints, low: _Ints) -> array:
    stops = tuple([a + size for size, a in zip(shape, low, strict=True)])
    return sliced(x, low, stops, ones[len(shape)])


@PAD.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, value = primals
    inside = _inner(cotangent, x._n.shape, node.attrs[0])
    around = ops.subtract(ops.sum(cotangent), ops.sum(inside))
    return inside, ops.astype(around, value._n.dtype)


@PAD.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, value = [ops.zeros_like(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    return _padded(x, value, *node.attrs)


@PAD.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x, value), (axis, other) = arrays, axes
    if other is not None:
        raise ValueError("[pad] Cannot vmap over constant_values, only over the array.")
    low, high = node.attrs
    return _padded(moveaxis(x, axis, 0), value, (0, *low), (0, *high)), 0


def _widths(pad_width: Any, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return what is put in front of and behind each axis.

    Raises:
        ValueError: not one pair for each axis, or a negative number.
    """
    ndim = len(shape)
    if isinstance(pad_width, int):
        pairs = [(pad_width, pad_width)] * ndim
    else:
        given = list(pad_width)
        if given and not isinstance(given[0], Sequence):
            # one number, or one pair, for all
            given = [(given[0], given[-1])]
        pairs = [(int(one[0]), int(one[-1])) for one in given]
        if len(pairs) == 1:
            pairs *= ndim
    if len(pairs) != ndim:
        raise ValueError(f"[pad] Invalid number of padding sizes passed to pad with axes of size {ndim}.")
    for axis, (low, high) in enumerate(pairs):
        if low < 0 or high < 0:
            raise ValueError(f"[pad] Padding sizes must be non-negative, got ({low}, {high}) for axis {axis}.")
    return pairs


def _mirrored(size: int, low: int, high: int, mode: str) -> list[int]:
    """Return which element of an axis stands at each place of the padded one."""
    if mode == "edge":
        return [min(max(i, 0), size - 1) for i in range(-low, size + high)]
    # there and back again, with the ends once or twice
    period = max(2 * size - 2, 1) if mode == "reflect" else 2 * size
    found = []
    for i in range(-low, size + high):
        place = i % period
        found.append(place if place < size else period - place - (mode == "symmetric"))
    return found


def pad(
    a: array,
    pad_width: int | Sequence[Any],
    mode: str = "constant",
    constant_values: Any = 0,
    *,
    stream: Any = None,
) -> array:
    """Put elements in front of and behind axes.

    Args:
        a: any shape and type.
        pad_width: how many: one number or one pair for all axes, or a pair for each.
        mode: ``constant``; ``edge``: the element at the end; ``reflect``: mirrored at it; ``symmetric``: behind it.
        constant_values: what is put there; converted to the type of ``a``.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: sizes that do not fit, or another mode.
        TypeError: a mode that is no string.
    """
    a = to_array(a)
    shape = a._n.shape
    widths = _widths(pad_width, shape)
    if type(mode) is not str:
        raise TypeError(f"[pad] mode must be a string, got {type(mode).__name__}.")
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"[pad] Invalid padding mode ({mode}) passed to pad.")
    to = None if stream is None else as_stream(stream)
    if not any(low or high for low, high in widths):
        return wrap(a._n)
    if mode == "constant" or (0 in shape and mode == "edge"):
        value = _corner(ops.astype(to_array(constant_values, a._n.dtype), a._n.dtype, stream=stream), to)
        return _padded(a, value, tuple([low for low, _ in widths]), tuple([high for _, high in widths]), to)
    for axis, (low, high) in enumerate(widths):
        if not low and not high:
            continue
        size = shape[axis]
        if size == 0:
            raise ValueError(f"[pad] Cannot extend axis {axis}, which has no elements, in mode {mode}.")
        if mode == "edge":
            sizes = a._n.shape
            parts = [
                broadcast(cut(a, axis, 0, 1, to), (*sizes[:axis], low, *sizes[axis + 1 :]), to),
                a,
                broadcast(cut(a, axis, size - 1, size, to), (*sizes[:axis], high, *sizes[axis + 1 :]), to),
            ]
            a = ops.concatenate([part for part in parts if part._n.shape[axis]], axis, stream=stream)
        else:
            a = gathered(a, [array(_mirrored(size, low, high, mode))], axis, to)
    return a


def _corner(value: array, stream: Any) -> array:
    """Return a value as a scalar; of several, the first.

    Raises:
        ValueError: there is none.
    """
    if 0 in value._n.shape:
        raise ValueError(f"[pad] constant_values has no elements: shape {shape_text(value._n.shape)}.")
    for _ in value._n.shape:
        value = reshaped(cut(value, 0, 0, 1, stream), value._n.shape[1:], stream)
    return value
