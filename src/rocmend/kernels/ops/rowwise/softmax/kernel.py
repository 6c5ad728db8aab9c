"""The Triton kernels: rows in registers, or given what their parts came to; the gradients likewise."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.online import log_sum, merge
from rocmend.kernels.language import narrow


@triton.jit
def held_kernel(x_ptr, out_ptr, x_stride, rows, n, LOG: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """ROWS rows a program, read once."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    # Rows beyond the last are all -inf: give them a zero, so that nothing there is NaN.
    x = tl.where(row < rows, x, 0.0)
    below = x - tl.max(x, axis=1)[:, None]
    power = tl.exp(below)
    power = tl.where(column < n, power, 0.0)
    total = tl.sum(power, axis=1)[:, None]
    out = below - tl.log(total) if LOG else power * (1.0 / total)
    tl.store(out_ptr + row * n + column, narrow(out, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def apply_kernel(
    x_ptr, top_ptr, sum_ptr, out_ptr, x_stride, rows, n, LOG: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """One block of one row, given what its parts came to."""
    row = tl.program_id(0).to(tl.int64) + tl.arange(0, 1)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    top, sums = merge(top_ptr, sum_ptr, row, rows, PARTS)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < n, other=0.0).to(tl.float32)
    # A row that holds inf is NaN throughout, as in registers; so is one with nothing above -inf, by 0 / 0.
    spoilt = tl.where(sums == float("inf"), float("nan"), 0.0)
    out = x - log_sum(top, sums) if LOG else tl.exp(x - top) * (1.0 / sums)
    tl.store(out_ptr + row * n + column, narrow(out + spoilt, out_ptr.dtype.element_ty), mask=column < n)


@triton.jit
def backward_kernel(
    grad_ptr, out_ptr, dx_ptr, grad_stride, rows, n, LOG: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """Write out · (grad - sum(out · grad)); of the logarithm: grad - exp(out) · sum(grad)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    grad = tl.load(grad_ptr + row * grad_stride + column, mask=inside, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + row * n + column, mask=inside, other=0.0).to(tl.float32)
    if LOG:
        dx = grad - tl.exp(out) * tl.sum(grad, axis=1)[:, None]
    else:
        dx = out * (grad - tl.sum(out * grad, axis=1)[:, None])
    tl.store(dx_ptr + row * n + column, narrow(dx, dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def products_kernel(grad_ptr, out_ptr, partial_ptr, grad_stride, n, steps, LOG: tl.constexpr, BLOCK: tl.constexpr):
    """Sum over one part of one row of out · grad, or of grad."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        column = (part * steps + step) * BLOCK + tl.arange(0, BLOCK)
        value = tl.load(grad_ptr + row * grad_stride + column, mask=column < n, other=0.0).to(tl.float32)
        if not LOG:
            value *= tl.load(out_ptr + row * n + column, mask=column < n, other=0.0).to(tl.float32)
        total += value
    tl.store(partial_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


@triton.jit
def apply_backward_kernel(
    grad_ptr, out_ptr, partial_ptr, dx_ptr, grad_stride, n,
    LOG: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of one row, given the parts' sums."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.sum(tl.load(partial_ptr + row * PARTS + tl.arange(0, PARTS)[None, :]), axis=1)[:, None]
    grad = tl.load(grad_ptr + row * grad_stride + column, mask=column < n, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + row * n + column, mask=column < n, other=0.0).to(tl.float32)
    dx = grad - tl.exp(out) * total if LOG else out * (grad - total)
    tl.store(dx_ptr + row * n + column, narrow(dx, dx_ptr.dtype.element_ty), mask=column < n)
