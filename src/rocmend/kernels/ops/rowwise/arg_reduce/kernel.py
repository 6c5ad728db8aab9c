"""The Triton kernels: the best key of a piece of an axis with its place, then the best of the pieces."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.last_block import is_last_block
from rocmend.kernels.common.order_keys import order_key


@triton.jit
def _best(keys_ptr, places_ptr, at, inside):
    """Return the place of the best of the pieces along the first axis, the first of equal ones."""
    WIDTH: tl.constexpr = keys_ptr.dtype.element_ty.primitive_bitwidth
    LEAST: tl.constexpr = -0x8000000000000000 if WIDTH == 64 else -0x80000000
    key = tl.load(keys_ptr + at, mask=inside, other=LEAST, cache_modifier=".cg")
    place = tl.load(places_ptr + at, mask=inside, other=0x7FFFFFFFFFFFFFFF, cache_modifier=".cg")
    return tl.min(tl.where(key == tl.max(key, 0)[None, :], place, 0x7FFFFFFFFFFFFFFF), 0)


@triton.jit
def _finish(keys_ptr, places_ptr, index_ptr, outer, lane, inner, pieces, PIECES: tl.constexpr):
    """Store the places of the best of all pieces for neighbours."""
    part = tl.arange(0, PIECES)[:, None]
    at = (outer * pieces + part) * inner + lane[None, :]
    index = _best(keys_ptr, places_ptr, at, (part < pieces) & (lane < inner)[None, :])
    tl.store(index_ptr + outer * inner + lane, index.to(index_ptr.dtype.element_ty), mask=lane < inner)


@triton.jit
def pieces_kernel(
    x_ptr, keys_ptr, places_ptr, counter_ptr, index_ptr, n, inner, pieces, piece, keys_at,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, INNER: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """Walk a piece of the axis for ``INNER`` neighbours; write ``[outer, piece, inner]``, or places if it is all.

    With counters the last piece to arrive takes the best of all (PIECES at most).
    """
    program = tl.program_id(0).to(tl.int64)
    groups = tl.cdiv(inner, INNER)
    group, rest = program % groups, program // groups
    number, outer = rest % pieces, rest // pieces
    neighbour = group * INNER + tl.arange(0, INNER)[None, :]
    first = number * piece
    base = x_ptr + (outer * n + first) * inner + neighbour
    # Places within a piece are 32-bit numbers: half the registers, and arithmetic that every GPU has.
    stop = tl.minimum(n - first, piece).to(tl.int32)
    WIDTH: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth
    LEAST: tl.constexpr = -0x8000000000000000 if WIDTH == 64 else -0x80000000
    best = tl.full((BLOCK, INNER), LEAST, tl.int64 if WIDTH == 64 else tl.int32)
    at = tl.zeros((BLOCK, INNER), tl.int32) + tl.arange(0, BLOCK)[:, None]
    for start in range(0, piece, BLOCK):
        place = start + tl.arange(0, BLOCK)[:, None]
        inside = (place < stop) & (neighbour < inner)
        bits = tl.load(base + place.to(tl.int64) * inner, mask=inside, other=0)
        key = order_key(bits, KIND, MODE)
        better = inside & (key > best)
        best = tl.where(better, key, best)
        at = tl.where(better, place, at)
    most = tl.max(best, 0)
    # A lane that never found anything better points at its first place, which is past the end where the piece is short.
    fit = (best == most[None, :]) & (at < stop)
    found = tl.min(tl.where(fit, at, 0x7FFFFFFF), 0) + first
    lane = group * INNER + tl.arange(0, INNER)
    to = (outer * pieces + number) * inner + lane
    if keys_ptr is not None:
        keys_ptr += keys_at
        tl.store(keys_ptr + to, most, mask=lane < inner)
        tl.store(places_ptr + to, found, mask=lane < inner)
        if counter_ptr is not None:
            if is_last_block(counter_ptr + outer * groups + group, pieces):
                _finish(keys_ptr, places_ptr, index_ptr, outer, lane, inner, pieces, PIECES)
    else:
        tl.store(index_ptr + to, found.to(index_ptr.dtype.element_ty), mask=lane < inner)


@triton.jit
def combine_kernel(keys_ptr, places_ptr, index_ptr, outputs, inner, pieces, PIECES: tl.constexpr, BLOCK: tl.constexpr):
    """Take the best of the pieces, the first of equal ones."""
    output = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    number = tl.arange(0, PIECES)[:, None]
    at = ((output // inner) * pieces)[None, :] * inner + number * inner + (output % inner)[None, :]
    inside = (number < pieces) & (output < outputs)[None, :]
    found = _best(keys_ptr, places_ptr, at, inside)
    tl.store(index_ptr + output, found.to(index_ptr.dtype.element_ty), mask=output < outputs)
