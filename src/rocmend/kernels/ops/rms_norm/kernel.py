"""The Triton kernels: one program a row."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def held_kernel(x_ptr, weight_ptr, out_ptr, row_stride, n, eps, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The row fits in registers: read once."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < n
    x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt_rn(tl.sum(x * x, axis=0) / n + eps)
    normal = narrow(x * scale, out_ptr.dtype.element_ty)
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
        normal = normal.to(tl.float32) * weight
    tl.store(out_ptr + row * n + column, narrow(normal.to(tl.float32), out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def walked_kernel(x_ptr, weight_ptr, out_ptr, row_stride, n, eps, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    """The row is walked twice: squares, then the output."""
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + column, mask=column < n, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt_rn(tl.sum(squares, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < n
        x = tl.load(x_ptr + row * row_stride + column, mask=inside, other=0.0).to(tl.float32)
        normal = narrow(x * scale, out_ptr.dtype.element_ty)
        if HAS_WEIGHT:
            weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
            normal = normal.to(tl.float32) * weight
        tl.store(out_ptr + row * n + column, narrow(normal.to(tl.float32), out_ptr.dtype.element_ty), mask=inside)
