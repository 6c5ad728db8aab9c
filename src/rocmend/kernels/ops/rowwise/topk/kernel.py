"""The Triton kernels: fronts of pieces of a row; or the leaders of its groups, and then the front of the best groups.

The first ``k`` elements stand in the ``k`` groups of neighbours whose own first elements come first, equal ones by
place. So a long row is read once, and only a few thousand numbers are sorted.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.order_keys import ascending, order_key
from rocmend.kernels.language import INTERPRETED


@triton.jit
def _front(packed, KEPT: tl.constexpr):
    """Return the ``KEPT`` least of integers, in order; ``KEPT`` is a power of two."""
    SIZE: tl.constexpr = packed.shape[0]
    if KEPT >= SIZE:
        found = ascending(packed)
    elif INTERPRETED:
        lines = tl.reshape(ascending(packed), (SIZE // KEPT, KEPT))
        found = tl.sum(tl.where(tl.arange(0, SIZE // KEPT)[:, None] == 0, lines, 0), 0)
    else:
        found = ~tl.topk(~packed, KEPT)
    return found


@triton.jit
def pieces_kernel(
    x_ptr, found_ptr, n, pieces, k,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr,
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
        packed = _front(tl.where(inside, key * 65536 + column, 0x7FFFFFFF), KEPT)
        wide = (packed >> 16).to(tl.int64) * 4294967296 + (start + (packed & 0xFFFF))
        wide = tl.where(packed == 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF, wide)
    else:
        wide = tl.where(inside, key.to(tl.int64) * 4294967296 + (start + column), 0x7FFFFFFFFFFFFFFF)
        wide = _front(wide, KEPT)
    kept = tl.arange(0, KEPT)
    tl.store(found_ptr + program * k + kept, wide, mask=kept < k)


@triton.jit
def leaders_kernel(
    x_ptr, leaders_ptr, n, groups, KIND: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the first key of each ``GROUP`` neighbours as ``key · 2^32 + group``: ``leaders[row, group]``."""
    tiles = tl.cdiv(groups, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    row = program // tiles
    group = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    place = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = place < n
    key = order_key(tl.load(x_ptr + row * n + place, mask=inside, other=0), KIND, MODE)
    first = tl.min(tl.where(inside, key, 0x7FFFFFFF), 1)
    tl.store(leaders_ptr + row * groups + group, first.to(tl.int64) * 4294967296 + group, mask=group < groups)


@triton.jit
def _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT: tl.constexpr):
    """Write a front; at the end, where it is the row's, its elements and their places."""
    column = tl.arange(0, KEPT)
    to, kept = program * k + column, column < k
    if front_ptr is not None:
        tl.store(front_ptr + to, packed, mask=kept)
    else:
        place = packed & 0xFFFFFFFF
        tl.store(index_ptr + to, place.to(index_ptr.dtype.element_ty), mask=kept)
        tl.store(values_ptr + to, tl.load(x_ptr + row * n + place, mask=kept, other=0), mask=kept)


@triton.jit
def merge_kernel(
    found_ptr, x_ptr, front_ptr, values_ptr, index_ptr, n, m, pieces, k, BLOCK: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Take the first ``k`` of ``BLOCK`` candidates."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // pieces, (program % pieces) * BLOCK
    column = tl.arange(0, BLOCK)
    packed = tl.load(found_ptr + row * m + start + column, mask=start + column < m, other=0x7FFFFFFFFFFFFFFF)
    packed = _front(packed, KEPT)
    _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT)


@triton.jit
def members_kernel(
    leaders_ptr, x_ptr, front_ptr, values_ptr, index_ptr, n, pieces, k,
    KIND: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Take the first ``k`` of ``BLOCK`` members of the row's best groups, ``leaders[row, k]``."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    member = (program % pieces) * BLOCK + tl.arange(0, BLOCK)
    number = member // GROUP
    group = tl.load(leaders_ptr + row * k + number, mask=number < k, other=0) & 0xFFFFFFFF
    place = group * GROUP + member % GROUP
    inside = (number < k) & (place < n)
    key = order_key(tl.load(x_ptr + row * n + place, mask=inside, other=0), KIND, MODE)
    packed = _front(tl.where(inside, key.to(tl.int64) * 4294967296 + place, 0x7FFFFFFFFFFFFFFF), KEPT)
    _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT)
