"""Values from one type to another, and what unsigned integers need that are stored as signed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.array import record
from rocmend.mlx.dtypes import Dtype, bool_, float32, uint64
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.node import Node


# -- unsigned integers, stored as signed ones of the same bits

_TOP = {2: -(2**15), 4: -(2**31), 8: -(2**63)}


def widened(tensor: Any, dtype: Dtype) -> Any:
    """Return the values of a uint16 or uint32 tensor in a signed type that holds them; other tensors as they are."""
    if dtype is dtypes.uint16:
        return tensor.int() & 0xFFFF
    if dtype is dtypes.uint32:
        return tensor.long() & 0xFFFFFFFF
    return tensor


def ordered(tensor: Any, dtype: Dtype) -> Any:
    """Return a tensor whose signed order is the order of the unsigned values; applying it twice gives them back."""
    return tensor ^ _TOP[dtype.size] if dtype.is_unsigned else tensor


# -- conversion


def _as_type(node: Node, tensor: Any) -> Any:
    return converted(tensor, node.attrs, node.dtype)


# its rules stand in cast.py
ASTYPE = Primitive("AsType", _as_type, elementwise=True)


def converted(tensor: Any, source: Dtype, target: Dtype) -> Any:
    """Convert a tensor stored as ``source`` to one stored as ``target``, value by value as C++ does."""
    if source is target:
        return tensor
    storage = target.storage
    if source.is_complex:
        if target is bool_:
            return tensor != 0
        tensor, source = torch.real(tensor), float32
    if source.is_unsigned:
        tensor = _from_unsigned(tensor, source, target)
    elif source.is_float and not target.is_inexact and target is not bool_:
        return _float_to_integer(tensor, target)
    return tensor.to(storage)


def _from_unsigned(tensor: Any, source: Dtype, target: Dtype) -> Any:
    """Return values of an unsigned type in a type from which torch converts them rightly."""
    if source is not uint64:
        # the bits are enough where the target is an integer of no more than these
        return widened(tensor, source) if target.is_inexact or target.size > source.size else tensor
    if not target.is_inexact:
        return tensor
    # Halve, keeping the last bit sticky, so that the conversion rounds as if from all 64 bits.
    halved = ((tensor >> 1) & 0x7FFFFFFFFFFFFFFF) | (tensor & 1)
    wide = torch.float64 if target.storage is torch.float64 else torch.float32
    return torch.where(tensor < 0, halved.to(wide) * 2, tensor.to(wide))


def _float_to_integer(tensor: Any, target: Dtype) -> Any:
    """Truncate. Values out of range give what a 64-bit (32-bit) conversion leaves in the low bits, as on x86."""
    if target is uint64:
        # the upper half does not fit a signed conversion: bring it down by 2**63 and set the bit again
        wide = tensor.double()
        return torch.where(wide >= 2.0**63, (wide - 2.0**63).long() ^ _TOP[8], wide.long())
    if target.size == 8:
        return tensor.to(torch.int64)
    if target is dtypes.int32:
        return tensor.to(torch.int32)
    return tensor.to(torch.int64 if target.size == 4 else torch.int32).to(target.storage)


def cast_node(x: Node, dtype: Dtype, stream: Any = None) -> Node:
    """Return a node of ``x`` converted to another type."""
    return record(ASTYPE, (x,), x.shape, dtype, x.dtype, None, stream)._n
