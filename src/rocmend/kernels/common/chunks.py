"""Eight codes at a time: a window of at most 64 bits, for every width, through one or two loads."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def window8(rows, chunk, mask, BITS: tl.constexpr):
    """Return the bits of codes ``8 * chunk`` to ``8 * chunk + 7`` of rows, the first in the lowest: uint32, or uint64.

    A window starts at a whole byte and never reaches into a third word; words stand at a multiple of 8 bytes.

    Args:
        rows: Pointers to the first word of each row, to be broadcast against chunk.
        chunk: Which eight codes of the row.
        mask: Where to load; 0 elsewhere.
        BITS: 1 to 8.
    """
    if BITS == 1:
        window = tl.load(rows.to(tl.pointer_type(tl.uint8)) + chunk, mask=mask, other=0).to(tl.uint32)
    elif BITS == 2:
        window = tl.load(rows.to(tl.pointer_type(tl.uint16)) + chunk, mask=mask, other=0).to(tl.uint32)
    elif BITS == 4:
        window = tl.load(rows + chunk, mask=mask, other=0).to(tl.uint32, bitcast=True)
    elif BITS == 8:
        window = tl.load(rows.to(tl.pointer_type(tl.uint64)) + chunk, mask=mask, other=0)
    else:
        bit = chunk * (8 * BITS)
        word = bit >> 5
        shift = bit & 31
        low = tl.load(rows + word, mask=mask, other=0).to(tl.uint32, bitcast=True)
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


@triton.jit
def whole8(window, place, BITS: tl.constexpr):
    """Return the integers at places 0 to 7 of windows in fp32, each times 1 over its place's ``offset8``.

    The bits of a code are put where the fraction of 2^23 stands, not shifted down: one operation for most codes.
    Window and place are broadcast; with the places along the first axis they lie in one lane's registers.
    """
    if BITS == 4:
        bits = (window >> ((place // 4) * 16).to(tl.uint32)) & (15 << ((place % 4) * 4)).to(tl.uint32)
    elif BITS <= 2:
        bits = window & (((1 << BITS) - 1) << (place * BITS)).to(tl.uint32)
    else:
        bits = codes8(window, place, BITS).to(tl.uint32)
    return (bits | 0x4B000000).to(tl.float32, bitcast=True) - 8388608.0


@triton.jit
def offset8(place, BITS: tl.constexpr):
    """Return by which factor what multiplies ``whole8`` must be smaller, in fp32."""
    if BITS == 4:
        step = (place % 4) * 4
    elif BITS <= 2:
        step = place * BITS
    else:
        step = place * 0
    return ((127 - step) << 23).to(tl.float32, bitcast=True)
