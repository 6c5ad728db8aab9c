"""The Triton kernels: lines of any strides, and tiles that are turned through LDS."""

# Triton reads this: no sets, only whole chains of if and else are left out at compile time, constants are parameters.
# ruff: noqa: SIM300

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def _cast(x, UNSIGNED: tl.constexpr, TO_BOOL: tl.constexpr, TO: tl.constexpr):
    """Return elements in another type, as torch casts them; ``UNSIGNED`` says how integer bits are read."""
    if TO_BOOL:
        if x.dtype == tl.bfloat16:
            x = x.to(tl.float32)
        return (x != 0).to(tl.int8)
    if x.dtype == TO:
        return x
    if UNSIGNED:
        WIDTH: tl.constexpr = x.dtype.primitive_bitwidth
        if WIDTH == 8:
            x = x.to(tl.uint8, bitcast=True)
        elif WIDTH == 16:
            x = x.to(tl.uint16, bitcast=True)
        elif WIDTH == 32:
            x = x.to(tl.uint32, bitcast=True)
        else:
            x = x.to(tl.uint64, bitcast=True)
    if TO == tl.float64:
        if x.dtype == tl.bfloat16 or x.dtype == tl.float16:
            x = x.to(tl.float32)
        return x.to(TO)
    if TO.is_floating():
        return narrow(x.to(tl.float32), TO)
    if x.dtype == tl.bfloat16 or x.dtype == tl.float16:
        x = x.to(tl.float32)
    return x.to(tl.int64).to(TO)


@triton.jit
def lines_kernel(
    x_ptr, out_ptr, lines, n, x_step, out_step, n0, n1, n2, n3, n4, x0, x1, x2, x3, x4, x5, o0, o1, o2, o3, o4, o5,
    UNSIGNED: tl.constexpr, TO_BOOL: tl.constexpr, RANK: tl.constexpr, FEW: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines of ``n`` elements; ``n0`` is the size of the axis just before them, ``n1`` of the one before that.

    Lines and columns are counted in 32 bits where they are few: divisions of 64 bits take longer than the copy.
    """
    pieces = tl.cdiv(n, BLOCK)
    program = tl.program_id(0)
    if not FEW:
        program = program.to(tl.int64)
    line = (program // pieces) * ROWS + tl.arange(0, ROWS)
    column = (program % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = (line < lines)[:, None] & (column < n)[None, :]
    at = column.to(tl.int64)[None, :]
    rest = line
    if RANK == 0:
        x_at = line.to(tl.int64) * 0
        out_at = line.to(tl.int64) * 0
    elif RANK == 1:
        x_at = rest.to(tl.int64) * x0
        out_at = rest.to(tl.int64) * o0
    else:
        x_at = (rest % n0).to(tl.int64) * x0
        out_at = (rest % n0).to(tl.int64) * o0
        rest = rest // n0
    if RANK == 2:
        x_at += rest.to(tl.int64) * x1
        out_at += rest.to(tl.int64) * o1
    elif RANK > 2:
        x_at += (rest % n1).to(tl.int64) * x1
        out_at += (rest % n1).to(tl.int64) * o1
        rest = rest // n1
    if RANK == 3:
        x_at += rest.to(tl.int64) * x2
        out_at += rest.to(tl.int64) * o2
    elif RANK > 3:
        x_at += (rest % n2).to(tl.int64) * x2
        out_at += (rest % n2).to(tl.int64) * o2
        rest = rest // n2
    if RANK == 4:
        x_at += rest.to(tl.int64) * x3
        out_at += rest.to(tl.int64) * o3
    elif RANK > 4:
        x_at += (rest % n3).to(tl.int64) * x3
        out_at += (rest % n3).to(tl.int64) * o3
        rest = rest // n3
    if RANK == 5:
        x_at += rest.to(tl.int64) * x4
        out_at += rest.to(tl.int64) * o4
    elif RANK > 5:
        x_at += (rest % n4).to(tl.int64) * x4 + (rest // n4).to(tl.int64) * x5
        out_at += (rest % n4).to(tl.int64) * o4 + (rest // n4).to(tl.int64) * o5
    x = tl.load(x_ptr + x_at[:, None] + at * x_step, mask=inside, other=0)
    out = _cast(x, UNSIGNED, TO_BOOL, out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_at[:, None] + at * out_step, out, mask=inside)


@triton.jit
def grid_kernel(
    x_ptr, out_ptr, n, n0, x_step, out_step, x0, x1, x2, o0, o1, o2,
    UNSIGNED: tl.constexpr, TO_BOOL: tl.constexpr, PIECES: tl.constexpr, FULL: tl.constexpr, NEAR: tl.constexpr,
    DENSE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines of ``n`` elements by programs in a grid that is made of the axes: nothing is divided at run time.

    Programs are (pieces of a line, n0, n1) with PIECES, else (blocks of n0, n1, n2). FULL: all tiles are whole. NEAR:
    places within a tile are counted in 32 bits. DENSE: what a program writes lies in one piece.
    """
    first, second, third = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    place = tl.arange(0, ROWS * BLOCK)
    row, column = place // BLOCK, place % BLOCK
    if PIECES:
        x_ptr += third * x1 + second * x0
        out_ptr += third * o1 + second * o0
        column = first * BLOCK + place
        place = column
        inside = column < n
    else:
        blocks = first.to(tl.int64)
        x_ptr += second * x1 + third * x2 + blocks * x0 * ROWS
        out_ptr += second * o1 + third * o2 + (blocks * (ROWS * BLOCK) if DENSE else blocks * o0 * ROWS)
        inside = (blocks * ROWS + row < n0) & (column < n)
    if not NEAR:
        row, column = row.to(tl.int64), column.to(tl.int64)
    source = x_ptr + (column * x_step if PIECES else row * x0 + column * x_step)
    if DENSE:
        target = out_ptr + place
    else:
        target = out_ptr + (column * out_step if PIECES else row * o0 + column * out_step)
    if FULL:
        x = tl.load(source)
        tl.store(target, _cast(x, UNSIGNED, TO_BOOL, out_ptr.dtype.element_ty))
    else:
        x = tl.load(source, mask=inside, other=0)
        tl.store(target, _cast(x, UNSIGNED, TO_BOOL, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def vectors_kernel(
    x_ptr, out_ptr, vectors, m, n0, n1, x0, x1, x2,
    UNSIGNED: tl.constexpr, TO_BOOL: tl.constexpr, RANK: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines of ``m`` vectors to a tensor without gaps: no lane is left over at the end of a line.

    ``n0`` and ``n1`` are the sizes of the two axes just before a line. All is counted in 32 bits but for places.
    """
    vector = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (vector < vectors)[:, None]
    line = vector // m
    at = (vector - line * m).to(tl.int64) * VECTOR
    if RANK == 1:
        at += line.to(tl.int64) * x0
    else:
        rest = line // n0
        at += (line - rest * n0).to(tl.int64) * x0
        if RANK == 2:
            at += rest.to(tl.int64) * x1
        else:
            last = rest // n1
            at += (rest - last * n1).to(tl.int64) * x1 + last.to(tl.int64) * x2
    lane = tl.arange(0, VECTOR)[None, :]
    x = tl.load(x_ptr + at[:, None] + lane, mask=inside, other=0)
    out = _cast(x, UNSIGNED, TO_BOOL, out_ptr.dtype.element_ty)
    tl.store(out_ptr + (vector.to(tl.int64) * VECTOR)[:, None] + lane, out, mask=inside)


@triton.jit
def turned_kernel(
    x_ptr, out_ptr, m, n, x_step, out_step, n0, n1, n2, x0, x1, x2, x3, o0, o1, o2, o3,
    UNSIGNED: tl.constexpr, TO_BOOL: tl.constexpr, RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Copy tiles that are contiguous along m in x and along n in the output; the compiler turns them through LDS."""
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    program = tl.program_id(0).to(tl.int64)
    tile, rest = program % (tiles_m * tiles_n), program // (tiles_m * tiles_n)
    row = (tile % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = (tile // tiles_m) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (row < m) & (column < n)
    x_at = rest * 0
    out_at = rest * 0
    if RANK >= 1:
        x_at += (rest % n0) * x0
        out_at += (rest % n0) * o0
        rest = rest // n0
    if RANK >= 2:
        x_at += (rest % n1) * x1
        out_at += (rest % n1) * o1
        rest = rest // n1
    if RANK >= 3:
        x_at += (rest % n2) * x2
        out_at += (rest % n2) * o2
        rest = rest // n2
    if RANK >= 4:
        x_at += rest * x3
        out_at += rest * o3
    x = tl.load(x_ptr + x_at + row + column * x_step, mask=inside, other=0)
    out = _cast(x, UNSIGNED, TO_BOOL, out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_at + row * out_step + column, out, mask=inside)
