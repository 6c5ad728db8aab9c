"""Eight codes at a time: a window of at most 64 bits, for every width, through one or two loads."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def window8(rows, chunk, mask, BITS: tl.constexpr):
    """Return the bits of codes ``8 * chunk`` to ``8 * chunk + 7`` of rows, the first in the lowest: uint32, or uint64.

    A window of eight codes starts at a whole byte and never reaches into a third word.

    Args:
        rows: Pointers to the first word of each row, to be broadcast against chunk.
        chunk: Which eight codes of the row.
        mask: Where to load; 0 elsewhere.
        BITS: 1 to 8.
    """
    bit = chunk * (8 * BITS)
    word = bit >> 5
    shift = bit & 31
    low = tl.load(rows + word, mask=mask, other=0).to(tl.uint32, bitcast=True)
    if BITS <= 4 and BITS != 3:
        window = low >> shift.to(tl.uint32)
    else:
        reaches = mask & (shift + 8 * BITS > 32)
        high = tl.load(rows + word + 1, mask=reaches, other=0).to(tl.uint32, bitcast=True)
        window = (low.to(tl.uint64) | (high.to(tl.uint64) << 32)) >> shift.to(tl.uint64)
    return window


@triton.jit
def codes8(window, place, BITS: tl.constexpr):
    """Return the codes at places 0 to 7 of windows, as int32; window and place are broadcast."""
    if BITS <= 4 and BITS != 3:
        codes = window >> (place * BITS).to(tl.uint32)
    else:
        codes = (window >> (place * BITS).to(tl.uint64)).to(tl.uint32)
    return (codes & ((1 << BITS) - 1)).to(tl.int32)
