"""How ops over one axis see a tensor: raw bits, rows, and the sizes before, on and after the axis."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES

_RAW = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
INDEX_DTYPES = (torch.int64, torch.int32, torch.uint32)


class Split(NamedTuple):
    """Sizes before, on and after an axis."""

    outer: int
    length: int
    inner: int


def normal_axis(op: str, axis: int, rank: int) -> int:
    """Return a non-negative axis.

    Raises:
        UsageError: There is no such axis.
    """
    if not -max(rank, 1) <= axis < max(rank, 1):
        raise UsageError(op, f"expected an axis of {rank}, got {axis}.")
    return axis % max(rank, 1)


def on_axis(op: str, x: torch.Tensor, axis: int | None) -> tuple[torch.Tensor, int]:
    """Return x and a non-negative axis; a scalar, and x where the axis is None, as one row.

    Raises:
        UsageError: There is no such axis.
    """
    if axis is None or x.dim() == 0:
        return x.reshape(-1), 0
    return x, normal_axis(op, axis, x.dim())


def split(shape: torch.Size, axis: int) -> Split:
    """Return the sizes before, on and after an axis of a shape."""
    return Split(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def kind(dtype: torch.dtype) -> str:
    """Return how elements are compared: ``signed``, ``unsigned`` or the float type's name."""
    if dtype.is_floating_point:
        return NAMES[dtype]
    return "unsigned" if dtype == torch.bool or NAMES[dtype].startswith("u") else "signed"


def raw(x: torch.Tensor) -> torch.Tensor:
    """Return the same memory as signed integers of the same width."""
    flat = x.reshape(1) if x.dim() == 0 else x
    return flat.view(_RAW[x.element_size()])


def raw_type(dtype: torch.dtype) -> torch.dtype | None:
    """Return the signed integers of the same width, or None where it is them."""
    found = _RAW[dtype.itemsize]
    return None if found == dtype else found


def rows(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Return ``[rows, length]``, contiguous, with an axis brought to the end."""
    moved = x.movedim(axis, -1)
    length = moved.shape[-1]
    return moved.contiguous().view(moved.numel() // length if length else math.prod(moved.shape[:-1]), length)


def unrows(out: torch.Tensor, shape: torch.Size, axis: int) -> torch.Tensor:
    """Return ``[rows, k]`` as ``shape`` with ``k`` elements along an axis, contiguous."""
    rest = shape[:axis] + shape[axis + 1 :]
    return out.view(*rest, out.shape[-1]).movedim(-1, axis).contiguous()


def check_index_dtype(op: str, dtype: torch.dtype, length: int) -> None:
    """Check the type that indices are asked in.

    Raises:
        UsageError: It is no index type, or cannot hold the indices.
    """
    if dtype not in INDEX_DTYPES:
        raise UsageError(op, f"expected indices in int64, int32 or uint32, got {dtype}.")
    if length > (1 << 31) and dtype != torch.int64:
        raise UsageError(op, f"expected an axis of at most 2^31 elements for {dtype} indices, got {length}.")
