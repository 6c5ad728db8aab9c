"""The Triton kernels: one walk over each row, or over its parts; the gradient."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.online import log_sum, merge, walk, whole
from rocmend.kernels.language import narrow


@triton.jit
def held_kernel(x_ptr, out_ptr, x_stride, rows, n, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    """ROWS rows a program, in registers."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    top, sums, _ = whole(x_ptr, x_stride, row, rows, n, False, BLOCK)
    tl.store(out_ptr + row, narrow(log_sum(top, sums), out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def walk_kernel(
    x_ptr, out_ptr, x_stride, rows, n, steps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """ROWS whole rows a program."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    top, sums, _ = walk(x_ptr, x_stride, row, rows, n, 0, steps, False, ROWS, BLOCK, VECTOR, STAGES)
    tl.store(out_ptr + row, narrow(log_sum(top, sums), out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def merge_kernel(top_ptr, sum_ptr, out_ptr, rows, PARTS: tl.constexpr, ROWS: tl.constexpr):
    """The parts of ROWS rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    top, sums = merge(top_ptr, sum_ptr, row, rows, PARTS)
    tl.store(out_ptr + row, narrow(log_sum(top, sums), out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def backward_kernel(grad_ptr, x_ptr, lse_ptr, dx_ptr, x_stride, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Write grad · exp(x - lse), one tile."""
    tiles = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % tiles) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    lse = tl.load(lse_ptr + row, mask=row < rows, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(dx_ptr + row * n + column, narrow(grad * tl.exp(x - lse), dx_ptr.dtype.element_ty), mask=inside)
