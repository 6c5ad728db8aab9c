"""The Triton kernels: rows in registers, rows split over programs, and the gradients."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow
from rocmend.kernels.ops.rms_norm.kernel import inverse_root


@triton.jit
def _affine(
    normal, weight_ptr, bias_ptr, column, n, dtype: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr
):
    """Round to the output's type after normalising, weighting and adding the bias: MLX's order."""
    normal = narrow(normal, dtype)
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0).to(tl.float32)
        normal = narrow(normal.to(tl.float32) * weight, dtype)
    if HAS_BIAS:
        bias = tl.load(bias_ptr + column, mask=column < n, other=0.0).to(tl.float32)
        normal = narrow(normal.to(tl.float32) + bias, dtype)
    return normal


@triton.jit
def held_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, rows, n, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program, read once; the variance is that of the centred row."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(column < n, x - tl.sum(x, axis=1)[:, None] / n, 0.0)
    scale = inverse_root(tl.sum(centred * centred, axis=1)[:, None], n, eps)
    out = _affine(centred * scale, weight_ptr, bias_ptr, column, n, out_ptr.dtype.element_ty, HAS_WEIGHT, HAS_BIAS)
    tl.store(out_ptr + row * n + column, out, mask=inside)


@triton.jit
def moments_kernel(x_ptr, mean_ptr, square_ptr, x_stride, n, BLOCK: tl.constexpr):
    """Mean, and sum of squares about it, of one block of one row."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    column = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < n, other=0.0).to(tl.float32)
    count = tl.minimum(n - part * BLOCK, BLOCK)
    mean = tl.sum(x, axis=0) / count
    centred = tl.where(column < n, x - mean, 0.0)
    place = row * tl.num_programs(1) + part
    tl.store(mean_ptr + place, mean)
    tl.store(square_ptr + place, tl.sum(centred * centred, axis=0))


@triton.jit
def scale_kernel(
    x_ptr, weight_ptr, bias_ptr, mean_ptr, square_ptr, out_ptr, x_stride, n, parts, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of one row, given the moments of all its blocks."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, PARTS)[None, :]
    counts = tl.where(part < parts, tl.minimum(n - part * BLOCK, BLOCK), 0).to(tl.float32)
    means = tl.load(mean_ptr + row * parts + part, mask=part < parts, other=0.0)
    squares = tl.load(square_ptr + row * parts + part, mask=part < parts, other=0.0)
    mean = tl.sum(means * counts, axis=1)[:, None] / n
    apart = means - mean
    scale = inverse_root(tl.sum(squares + apart * apart * counts, axis=1)[:, None], n, eps)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * x_stride + column, mask=column < n, other=0.0).to(tl.float32)
    normal = (x - mean) * scale
    out = _affine(normal, weight_ptr, bias_ptr, column, n, out_ptr.dtype.element_ty, HAS_WEIGHT, HAS_BIAS)
    tl.store(out_ptr + row * n + column, out, mask=column < n)


@triton.jit
def backward_kernel(
    grad_ptr, x_ptr, weight_ptr, dx_ptr, dweight_ptr, dbias_ptr, grad_stride, x_stride, rows, n, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradient of x, and this program's part of the weight's and the bias's."""
    column = tl.arange(0, BLOCK)[None, :]
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0).to(tl.float32)
    products = tl.zeros((ROWS, BLOCK), tl.float32)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = (start + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (column < n)
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        grad = tl.load(grad_ptr + row * grad_stride + column, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, x - tl.sum(x, axis=1)[:, None] / n, 0.0)
        scale = inverse_root(tl.sum(centred * centred, axis=1)[:, None], n, eps)
        normal = centred * scale
        if HAS_BIAS:
            sums += grad
        if HAS_WEIGHT:
            products += grad * normal
            grad = grad * weight
        mean = tl.sum(grad, axis=1)[:, None] / n
        dx = scale * (grad - mean - normal * (tl.sum(grad * normal, axis=1)[:, None] / n))
        tl.store(dx_ptr + row * n + column, narrow(dx, dx_ptr.dtype.element_ty), mask=inside)
    place = tl.program_id(0).to(tl.int64) * n + column
    if HAS_WEIGHT:
        tl.store(dweight_ptr + place, tl.sum(products, axis=0)[None, :], mask=column < n)
    if HAS_BIAS:
        tl.store(dbias_ptr + place, tl.sum(sums, axis=0)[None, :], mask=column < n)
