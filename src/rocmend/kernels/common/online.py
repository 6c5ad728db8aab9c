"""One walk over rows that gives the largest element and the sum of exponentials relative to it.

What exponentials are taken relative to is kept finite, between the least and the largest number of fp32, so that no
difference of infinities comes up: a row of -inf sums to 0, one with inf to inf, one with NaN to NaN.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def walk(
    x_ptr, x_stride, row, rows, n, first, steps,
    TOTAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Return the base, the sum of exponentials relative to it, and the plain sum (if TOTAL), each [ROWS, 1].

    Each group of VECTOR neighbours, which one lane holds, has a base of its own until the end: one exponential an
    element and one a group, and nothing is exchanged between lanes on the way.
    """
    base = tl.full((ROWS, BLOCK // VECTOR), -3.4028234663852886e38, tl.float32)
    sums = tl.zeros((ROWS, BLOCK // VECTOR), tl.float32)
    total = tl.zeros((ROWS, BLOCK // VECTOR), tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        column = (first + step) * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < n)
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=float("-inf")).to(tl.float32)
        if TOTAL:
            total += tl.sum(tl.reshape(tl.where(inside, x, 0.0), (ROWS, BLOCK // VECTOR, VECTOR)), axis=2)
        x = tl.reshape(x, (ROWS, BLOCK // VECTOR, VECTOR))
        new = tl.minimum(tl.maximum(base, tl.max(x, axis=2)), 3.4028234663852886e38)
        sums = sums * tl.exp(base - new) + tl.sum(tl.exp(x - new[:, :, None]), axis=2)
        base = new
    top = tl.max(base, axis=1)[:, None]
    return top, tl.sum(sums * tl.exp(base - top), axis=1)[:, None], tl.sum(total, axis=1)[:, None]


@triton.jit
def whole(x_ptr, x_stride, row, rows, n, TOTAL: tl.constexpr, BLOCK: tl.constexpr):
    """Return the same as ``walk``, for rows that fit in registers: one exponential an element, one pass."""
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=1)[:, None]
    top = tl.minimum(tl.maximum(top, -3.4028234663852886e38), 3.4028234663852886e38)
    sums = tl.sum(tl.exp(x - top), axis=1)[:, None]
    total = tl.zeros_like(sums)
    if TOTAL:
        total = tl.sum(tl.where(inside, x, 0.0), axis=1)[:, None]
    return top, sums, total


@triton.jit
def merge(top_ptr, sum_ptr, row, rows, PARTS: tl.constexpr):
    """Return the base and the sum of exponentials of rows, [ROWS, 1], from those of their parts."""
    part = tl.arange(0, PARTS)[None, :]
    bases = tl.load(top_ptr + row * PARTS + part, mask=row < rows, other=0.0)
    sums = tl.load(sum_ptr + row * PARTS + part, mask=row < rows, other=0.0)
    top = tl.max(bases, axis=1)[:, None]
    return top, tl.sum(sums * tl.exp(bases - top), axis=1)[:, None]


@triton.jit
def log_sum(top, sums):
    """Return the logarithm of the sum of exponentials: -inf of an empty one, NaN of NaN."""
    return tl.log(sums) + top


@triton.jit
def parts_kernel(
    x_ptr, top_ptr, sum_ptr, total_ptr, x_stride, rows, n, steps,
    TOTAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write the base and the sums of one part of each row."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    part = tl.program_id(1)
    top, sums, total = walk(x_ptr, x_stride, row, rows, n, part * steps, steps, TOTAL, ROWS, BLOCK, VECTOR, STAGES)
    place = row * tl.num_programs(1) + part
    tl.store(top_ptr + place, top, mask=row < rows)
    tl.store(sum_ptr + place, sums, mask=row < rows)
    if TOTAL:
        tl.store(total_ptr + place, total, mask=row < rows)
