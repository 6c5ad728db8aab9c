"""Integers whose order is that of the elements: -inf first, NaN last (whatever its sign), -0.0 equal to 0.0.

The kernels that compare take the bits of an element as a signed integer, so that one kernel serves every type, and bf16
needs no arithmetic.
"""

# Triton reads this: no sets, only whole chains of if and else are left out at compile time, constants are parameters.

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED


@triton.jit
def _of_float(bits, INFINITY: tl.constexpr, MOST: tl.constexpr):
    """Sign and magnitude to a signed number; NaN to the largest one."""
    magnitude = bits & MOST
    key = tl.where(bits < 0, -magnitude, magnitude)
    return tl.where(magnitude > INFINITY, MOST, key)


@triton.jit
def order_key(bits, KIND: tl.constexpr, MODE: tl.constexpr):
    """Return int32 (int64 for 64-bit elements) keys in the order of the elements whose bits are given.

    Args:
        bits: Elements viewed as signed integers of their width.
        KIND: ``signed``, ``unsigned``, or the float type's name.
        MODE: 0 ascending; 1 descending, NaN first; 2 descending for numbers, NaN last.
    """
    WIDTH: tl.constexpr = bits.dtype.primitive_bitwidth
    wide = bits
    if WIDTH < 32:
        wide = bits.to(tl.int32)
    if KIND == "float16":
        key = _of_float(wide, 0x7C00, 0x7FFF)
    elif KIND == "bfloat16":
        key = _of_float(wide, 0x7F80, 0x7FFF)
    elif KIND == "float32":
        key = _of_float(wide, 0x7F800000, 0x7FFFFFFF)
    elif KIND == "float64":
        key = _of_float(wide, 0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF)
    elif KIND == "unsigned":
        if WIDTH == 8:
            key = (wide & 0xFF) - 0x80
        elif WIDTH == 16:
            key = (wide & 0xFFFF) - 0x8000
        elif WIDTH == 32:
            key = wide ^ (-0x80000000)
        else:
            key = wide ^ (-0x8000000000000000)
    else:
        key = wide
    if MODE == 1:
        key = ~key
    if MODE == 2:
        if KIND == "float16" or KIND == "bfloat16":
            key = tl.where(key == 0x7FFF, key, ~key)
        elif KIND == "float32":
            key = tl.where(key == 0x7FFFFFFF, key, ~key)
        elif KIND == "float64":
            key = tl.where(key == 0x7FFFFFFFFFFFFFFF, key, ~key)
        else:
            key = ~key
    return key


@triton.jit
def _counted(packed):
    """Put each integer where as many are before it as it is larger than: a matrix of comparisons."""
    flat = packed
    if len(packed.shape) == 1:
        flat = packed[None, :]
    SIZE: tl.constexpr = flat.shape[1]
    at = tl.arange(0, SIZE)
    own, other = flat[:, :, None], flat[:, None, :]
    before = (other < own) | ((other == own) & (at[None, None, :] < at[None, :, None]))
    rank = tl.sum(before.to(tl.int32), 2)
    found = tl.sum(tl.where(rank[:, None, :] == at[None, :, None], other, 0), 2)
    return tl.reshape(found, packed.shape)


@triton.jit
def ascending(packed):
    """Return integers, all different or equal only where they are padding, sorted along the last of one or two axes.

    The interpreter takes seconds for ``tl.sort`` of a thousand elements; there the rank is counted instead.
    """
    if not INTERPRETED:
        found = tl.sort(packed)
    else:
        found = _counted(packed)
    return found
