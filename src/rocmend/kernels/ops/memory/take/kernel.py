"""The Triton kernels: lines that indices name, and single elements along an axis."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def place_of(index, n, UNSIGNED: tl.constexpr):
    """Return int64 places: negative indices count from the end."""
    place = index.to(tl.int64)
    if UNSIGNED:
        return place & 0xFFFFFFFF
    return tl.where(place < 0, place + n, place)


@triton.jit
def lines_kernel(
    x_ptr, index_ptr, out_ptr, lines, m, n, inner,
    UNSIGNED: tl.constexpr, FEW: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines of ``inner`` elements: ``out[outer, m, inner]`` of ``x[outer, n, inner]``; places are kept inside.

    Lines and columns are counted in 32 bits where they are few: divisions of 64 bits are slow.
    """
    pieces = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0)
    if not FEW:
        program = program.to(tl.int64)
    line = (program // pieces) * ROWS + tl.arange(0, ROWS)
    column = (program % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = (line < lines)[:, None] & (column < inner)[None, :]
    place = place_of(tl.load(index_ptr + line % m, mask=line < lines, other=0), n, UNSIGNED)
    place = tl.minimum(tl.maximum(place, 0), n - 1)
    source = ((line // m).to(tl.int64) * n + place) * inner
    x = tl.load(x_ptr + source[:, None] + column[None, :], mask=inside, other=0)
    tl.store(out_ptr + (line.to(tl.int64) * inner)[:, None] + column[None, :], x, mask=inside)


@triton.jit
def grid_kernel(
    x_ptr, index_ptr, out_ptr, m, n, inner,
    UNSIGNED: tl.constexpr, PIECES: tl.constexpr, FULL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines as ``lines_kernel`` does, by programs in a grid of the axes' sizes: nothing is divided.

    Programs are (pieces of a line, m, outer) with PIECES, else (blocks of m, outer). FULL: all tiles are whole.
    """
    if PIECES:
        line = tl.program_id(1) + tl.arange(0, ROWS)
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        outer = tl.program_id(2).to(tl.int64)
    else:
        line = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, BLOCK)
        outer = tl.program_id(1).to(tl.int64)
    if FULL:
        index = tl.load(index_ptr + line)
    else:
        index = tl.load(index_ptr + line, mask=line < m, other=0)
    place = tl.minimum(tl.maximum(place_of(index, n, UNSIGNED), 0), n - 1)
    source = x_ptr + ((outer * n + place) * inner)[:, None] + column[None, :]
    target = out_ptr + ((outer * m + line) * inner)[:, None] + column[None, :]
    if FULL:
        tl.store(target, tl.load(source))
    else:
        inside = (line < m)[:, None] & (column < inner)[None, :]
        tl.store(target, tl.load(source, mask=inside, other=0), mask=inside)


@triton.jit
def along_kernel(
    x_ptr, index_ptr, out_ptr, total, m, n, inner, UNSIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy single elements: ``out[o, j, i] = x[o, index[o, j, i], i]``."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = place_of(tl.load(index_ptr + at, mask=inside, other=0), n, UNSIGNED)
    place = tl.minimum(tl.maximum(place, 0), n - 1)
    line = at // inner
    source = ((line // m) * n + place) * inner + (at - line * inner)
    tl.store(out_ptr + at, tl.load(x_ptr + source, mask=inside, other=0), mask=inside)
