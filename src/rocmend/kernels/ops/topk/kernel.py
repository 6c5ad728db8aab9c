"""The Triton kernels: the front of each piece of a row, then the front of the pieces' fronts."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.order_keys import ascending, order_key


@triton.jit
def pieces_kernel(
    x_ptr, found_ptr, n, pieces, k,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the first ``k`` of a piece of a row as ``key · 2^32 + place``: ``found[row, piece, k]``."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // pieces, (program % pieces) * BLOCK
    column = tl.arange(0, BLOCK)
    inside = start + column < n
    bits = tl.load(x_ptr + row * n + start + column, mask=inside, other=0)
    WIDTH: tl.constexpr = bits.dtype.primitive_bitwidth
    key = order_key(bits, KIND, MODE)
    if WIDTH <= 16:
        packed = ascending(tl.where(inside, key * 65536 + column, 0x7FFFFFFF))
        wide = (packed >> 16).to(tl.int64) * 4294967296 + (start + (packed & 0xFFFF))
        wide = tl.where(packed == 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF, wide)
    else:
        wide = ascending(tl.where(inside, key.to(tl.int64) * 4294967296 + (start + column), 0x7FFFFFFFFFFFFFFF))
    tl.store(found_ptr + program * k + column, wide, mask=column < k)


@triton.jit
def merge_kernel(
    found_ptr, x_ptr, front_ptr, values_ptr, index_ptr, n, m, pieces, k, BLOCK: tl.constexpr,
):  # fmt: skip
    """Take the first ``k`` of ``BLOCK`` candidates; at the end, where they are the row's, write elements and places."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // pieces, (program % pieces) * BLOCK
    column = tl.arange(0, BLOCK)
    packed = tl.load(found_ptr + row * m + start + column, mask=start + column < m, other=0x7FFFFFFFFFFFFFFF)
    packed = ascending(packed)
    to, kept = program * k + column, column < k
    if front_ptr is not None:
        tl.store(front_ptr + to, packed, mask=kept)
    else:
        place = packed & 0xFFFFFFFF
        tl.store(index_ptr + to, place.to(index_ptr.dtype.element_ty), mask=kept)
        tl.store(values_ptr + to, tl.load(x_ptr + row * n + place, mask=kept, other=0), mask=kept)
