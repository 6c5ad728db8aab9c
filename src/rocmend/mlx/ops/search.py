"""Places in what is sorted, and elements that occur."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import bool_, int32, promote, uint32
from rocmend.mlx.ops.gather import gathered
from rocmend.mlx.ops.scatter import scattered
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.slices import cut
from rocmend.mlx.ops.sorting import ordered
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["searchsorted", "unique"]


def _keys(x: torch.Tensor, unsigned: bool) -> torch.Tensor:
    """Return integers in the order of the elements: -0.0 as 0.0, NaN behind everything."""
    import torch

    if x.dtype == torch.bool:
        return x.to(torch.uint8)
    if not x.dtype.is_floating_point:
        return ordered(x, unsigned)
    wide = x if x.dtype == torch.float64 else x.float()
    wide = torch.where(wide == 0, 0.0, wide)  # one zero
    bits = wide.view(torch.int64 if wide.dtype == torch.float64 else torch.int32)
    info = torch.iinfo(bits.dtype)
    # negative numbers are ordered backwards by their bits
    keys = torch.where(bits < 0, info.min - bits, bits)
    return torch.where(wide.isnan(), info.max, keys)


def _searchsorted(node: Node, row: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    import torch

    side, dtype = node.attrs
    if dtype.is_complex:
        return _compared(row, values, side)
    found = torch.searchsorted(
        _keys(row, dtype.is_unsigned).contiguous(), _keys(values, dtype.is_unsigned).contiguous(), right=side == "right"
    )
    return found.to(torch.int32)


def _compared(row: torch.Tensor, values: torch.Tensor, side: str) -> torch.Tensor:
    """Count what stands before each value: complex numbers by their real, then their imaginary part."""
    import torch

    a, b = row, values.unsqueeze(-1)
    equal = a.real == b.real
    less = (a.real < b.real) | (equal & (a.imag < b.imag)) | (b.isnan() & ~a.isnan())
    if side == "right":
        less = less | (equal & (a.imag == b.imag)) | (a.isnan() & b.isnan())
    return less.sum(-1).to(torch.int32)


# inputs: a sorted row and values; attrs: the side, the type of both
SEARCHSORTED = Primitive(
    "SearchSorted",
    _searchsorted,
    vjp=lambda node, primals, output, cotangent: (None, None),
)


@SEARCHSORTED.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return ops.zeros_like(output)


@SEARCHSORTED.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    row, values = arrays
    if axes[0] is not None:
        raise ValueError("[searchsorted] Cannot vmap over the sorted sequence, only over the values.")
    # one row serves all values
    return record(SEARCHSORTED, (row._n, values._n), values._n.shape, uint32, node.attrs), axes[1]


def searchsorted(sorted_sequence: array, values: array, /, side: str = "left", *, stream: Any = None) -> array:
    """Return where values would stand in a sorted sequence: how many elements are less, or less or equal.

    Args:
        sorted_sequence: ``[n]``, in ascending order; NaN stands last.
        values: any shape; types are promoted.
        side: ``left``: in front of equal elements, ``right``: behind them.
        stream: where.

    Returns:
        uint32, of the shape of ``values``, from 0 to n.

    Raises:
        ValueError: another side, or a sequence with other than one axis.
    """
    row, values = to_array(sorted_sequence), to_array(values)
    if side not in ("left", "right"):
        raise ValueError(f"[searchsorted] Invalid side '{side}'. Expected 'left' or 'right'.")
    if len(row._n.shape) != 1:
        raise ValueError(f"[searchsorted] The sorted sequence must be 1-D but has {len(row._n.shape)} dimensions.")
    dtype = promote(row._n.dtype, values._n.dtype)
    row, values = ops.astype(row, dtype, stream=stream), ops.astype(values, dtype, stream=stream)
    to = None if stream is None else as_stream(stream)
    return record(SEARCHSORTED, (row._n, values._n), values._n.shape, uint32, (side, dtype), None, to)


def _scatter(size: int, start: int, dtype: Dtype, places: array, values: array, mode: str, to: Any) -> array:
    """Return a row of ``size`` times ``start`` with values joined at places; those outside of it are left out."""
    return scattered(ops.full((size,), start, dtype, stream=to), [places], values, 0, mode, to)


def unique(
    a: array,
    /,
    size: int,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    fill_value: Any = None,
    *,
    stream: Any = None,
) -> Any:
    """Return the elements that occur, each once and in order.

    The size of the result is given and does not depend on values, so that nothing is evaluated.

    Args:
        a: any shape and type; each NaN is an element of its own.
        size: how many. Further ones are left out; where there are fewer, the rest is filled.
        return_index: whether to tell where each stands first in the elements as one row.
        return_inverse: whether to tell for each element of ``a`` where it stands in the result.
        return_counts: whether to tell how often each occurs: 0 where the result was filled.
        fill_value: what fills it; None: the smallest element.
        stream: where.

    Returns:
        The elements, or a tuple of them and what was asked for: uint32, uint32 of the shape of ``a``, int32.

    Raises:
        ValueError: a negative size, or no elements and nothing to fill the result with.
    """
    a = to_array(a)
    shape = a._n.shape
    dtype = a._n.dtype
    total = prod(shape)
    to = None if stream is None else as_stream(stream)
    if size < 0:
        raise ValueError(f"[unique] Received negative size {size}.")
    fill = None if fill_value is None else ops.astype(to_array(fill_value, dtype), dtype, stream=stream)
    if not total:
        if size and fill is None:
            raise ValueError("[unique] A fill value is required for an empty input with a non-zero size.")
        values = ops.broadcast_to(fill, (size,), stream=stream) if size else ops.zeros((0,), dtype, stream=stream)
        index = ops.zeros((size,), uint32, stream=stream)
        inverse = ops.zeros(shape, uint32, stream=stream)
        counts = ops.zeros((size,), int32, stream=stream)
        return _chosen(values, index, inverse, counts, return_index, return_inverse, return_counts)
    flat = reshaped(a, (total,), to)
    order = ops.argsort(flat, 0, stream=stream)
    row = gathered(flat, [order], 0, to)
    new = ops.not_equal(cut(row, 0, 1, total, to), cut(row, 0, 0, total - 1, to), stream=stream)
    new = ops.concatenate([ops.ones((1,), bool_, stream=stream), new], 0, stream=stream)
    # which of the elements that occur each one is
    ranks = ops.subtract(ops.cumsum(new, 0, dtype=int32, stream=stream), 1, stream=stream)
    # equal ones keep their order, so the first of them has the least place
    index = _scatter(size, total, uint32, ranks, order, "min", to)
    there = ops.less(index, total, stream=stream)
    if size:
        index = ops.where(there, index, cut(order, 0, 0, 1, to), stream=stream)
    values = gathered(flat, [index], 0, to)
    if fill is not None:
        values = ops.where(there, values, fill, stream=stream)
    inverse = counts = None
    if return_inverse:
        kept = ops.astype(ops.minimum(ranks, max(size - 1, 0), stream=stream), uint32, stream=stream)
        inverse = reshaped(_scatter(total, 0, uint32, order, kept, "assign", to), shape, to)
    if return_counts:
        counts = _scatter(size, 0, int32, ranks, ops.ones((total,), int32, stream=stream), "add", to)
    return _chosen(values, index, inverse, counts, return_index, return_inverse, return_counts)


def _chosen(values: Any, index: Any, inverse: Any, counts: Any, *asked: bool) -> Any:
    found = [one for one, wanted in zip((index, inverse, counts), asked, strict=True) if wanted]
    return (values, *found) if found else values
