"""One walk over rows that gives the largest element and the sum of exponentials relative to it."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def finite_or_zero(largest):
    """Return what exponentials are taken relative to: 0 where a row holds nothing above -inf."""
    return tl.where(largest == float("-inf"), 0.0, largest)


@triton.jit
def exp_below(x, largest):
    """Return exp(x - largest), 1 where they are equal, be it infinity."""
    return tl.exp(tl.where(x == largest, 0.0, x - largest))


@triton.jit
def walk(x_ptr, x_stride, row, rows, n, first, steps, TOTAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the largest element, the sum of exponentials relative to it, and the plain sum (if TOTAL), each [ROWS, 1].

    NaN anywhere in a row makes the sum of exponentials NaN.
    """
    largest = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(steps):
        column = (first + step) * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < n)
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=float("-inf")).to(tl.float32)
        if TOTAL:
            total += tl.where(inside, x, 0.0)
        new = tl.where(x > largest, x, largest)
        base = finite_or_zero(new)
        kept = tl.where(largest == float("-inf"), 1.0, exp_below(largest, base))
        sums = sums * kept + tl.where(x == float("-inf"), 0.0, exp_below(x, base))
        largest = new
    top = tl.max(largest, axis=1)[:, None]
    base = finite_or_zero(top)
    # A lane that saw nothing above -inf has a sum of 0 (or NaN), whatever it is multiplied with.
    scaled = sums * tl.where(largest == float("-inf"), 1.0, exp_below(largest, base))
    return top, tl.sum(scaled, axis=1)[:, None], tl.sum(total, axis=1)[:, None]


@triton.jit
def merge(top_ptr, sum_ptr, row, rows, PARTS: tl.constexpr):
    """Return the largest element and the sum of exponentials of rows, [ROWS, 1], from those of their parts."""
    part = tl.arange(0, PARTS)[None, :]
    tops = tl.load(top_ptr + row * PARTS + part, mask=row < rows, other=float("-inf"))
    sums = tl.load(sum_ptr + row * PARTS + part, mask=row < rows, other=0.0)
    top = tl.max(tops, axis=1)[:, None]
    base = finite_or_zero(top)
    scaled = sums * tl.where(tops == float("-inf"), 1.0, exp_below(tops, base))
    return top, tl.sum(scaled, axis=1)[:, None]


@triton.jit
def log_sum(top, sums):
    """Return the logarithm of the sum of exponentials: -inf of an empty one, NaN of NaN."""
    return tl.log(sums) + finite_or_zero(top)


@triton.jit
def parts_kernel(
    x_ptr, top_ptr, sum_ptr, total_ptr, x_stride, rows, n, steps,
    TOTAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """What one part of each row comes to."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    part = tl.program_id(1)
    top, sums, total = walk(x_ptr, x_stride, row, rows, n, part * steps, steps, TOTAL, ROWS, BLOCK)
    place = row * tl.num_programs(1) + part
    tl.store(top_ptr + place, top, mask=row < rows)
    tl.store(sum_ptr + place, sums, mask=row < rows)
    if TOTAL:
        tl.store(total_ptr + place, total, mask=row < rows)
