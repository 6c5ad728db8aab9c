"""Elements around an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, wrap
from rocmend.mlx.ops.gather import gathered
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import cut, ones, updated

__all__ = ["pad"]


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
        mode: ``constant``; ``edge``: the element at the end; ``reflect``: mirrored at it; ``symmetric``: mirrored behind
            it.
        constant_values: what is put there; converted to the type of ``a``.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: sizes that do not fit, or another mode.
    """
    from rocmend.mlx import ops

    a = to_array(a)
    shape = a._n.shape
    widths = _widths(pad_width, shape)
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"[pad] Invalid padding mode ({mode}) passed to pad.")
    to = None if stream is None else as_stream(stream)
    if not any(low or high for low, high in widths):
        return wrap(a._n)
    whole = tuple([low + size + high for size, (low, high) in zip(shape, widths, strict=True)])
    if mode == "constant" or 0 in shape:
        value = ops.astype(to_array(constant_values, a._n.dtype), a._n.dtype, stream=stream)
        starts = tuple([low for low, _ in widths])
        stops = tuple([low + size for size, (low, _) in zip(shape, widths, strict=True)])
        if 0 in shape:
            return ops.broadcast_to(value, whole, stream=stream)  # type: ignore[no-any-return]
        return updated(_around(value, whole, to), a, starts, stops, ones[len(shape)], to)
    for axis, (low, high) in enumerate(widths):
        if not low and not high:
            continue
        size = shape[axis]
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


def _around(value: array, shape: tuple[int, ...], stream: Any) -> array:
    """Return a value everywhere; of several, the one that stands at a corner.

    Raises:
        ValueError: it does not broadcast.
    """
    old = value._n.shape
    if old:
        value = cut_first(value, stream)
    return broadcast(value, shape, stream)


def cut_first(value: array, stream: Any) -> array:
    """Return the first element of an array as a scalar."""
    if 0 in value._n.shape:
        raise ValueError(f"[pad] constant_values has no elements: shape {shape_text(value._n.shape)}.")
    for _ in value._n.shape:
        value = reshaped(cut(value, 0, 0, 1, stream), value._n.shape[1:], stream)
    return value
