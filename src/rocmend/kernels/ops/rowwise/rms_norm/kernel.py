"""The Triton kernels: rows in registers, rows split over programs, and the gradients."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import again, narrow


@triton.jit
def inverse_root(squares, n, eps):
    """Return 1 / sqrt(squares / n + eps), each step rounded to nearest."""
    root = tl.sqrt_rn(squares / n + eps)
    return tl.div_rn(tl.full(root.shape, 1.0, tl.float32), root)


@triton.jit
def _weighted(normal, weight, dtype: tl.constexpr, HAS_WEIGHT: tl.constexpr):
    """Round to the output's type, weight, and round again: MLX's order."""
    normal = narrow(normal, dtype)
    if HAS_WEIGHT:
        normal = narrow(normal.to(tl.float32) * weight.to(tl.float32), dtype)
    return normal


@triton.jit
def held_kernel(
    x_ptr, residual_ptr, weight_ptr, sum_ptr, out_ptr, x_stride, residual_stride, rows, n, eps,
    HAS_RESIDUAL: tl.constexpr, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    EARLY: tl.constexpr = False, RELOAD: tl.constexpr = False, FULL: tl.constexpr = False,
    DENSE: tl.constexpr = False,
):  # fmt: skip
    """ROWS rows a program, read once from memory.

    With EARLY the weight is on its way before the sum is waited for. With RELOAD a row without a residual is read
    again from the caches, which keep it that long and no longer, so that registers hold more rows at a time.
    FULL: there are no rows and columns but those of whole tiles. DENSE, of rows with a residual: nothing lies between
    them, and 32 bits count all elements.
    """
    TWICE: tl.constexpr = RELOAD and not HAS_RESIDUAL
    FIRST: tl.constexpr = "evict_last" if TWICE else ""
    KEPT: tl.constexpr = "evict_last" if TWICE or DENSE else ""
    TO: tl.constexpr = ".cs" if TWICE else ""
    if FULL:
        n = BLOCK
    program = tl.program_id(0)
    if DENSE:
        x_stride = n
        residual_stride = n
    else:
        program = program.to(tl.int64)
    row = program * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    if FULL:
        inside = tl.full((ROWS, BLOCK), True, tl.int1)
    weight = 0.0
    if HAS_WEIGHT and EARLY and not DENSE:
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0, eviction_policy=KEPT)
    x = tl.load(x_ptr + (row * x_stride + column), mask=inside, other=0.0, eviction_policy=FIRST).to(tl.float32)
    total = x
    if HAS_RESIDUAL:
        residual = tl.load(residual_ptr + (row * residual_stride + column), mask=inside, other=0.0)
        if HAS_WEIGHT and DENSE:
            weight = tl.load(weight_ptr + column, mask=column < n, other=0.0, eviction_policy=KEPT)
        total = narrow(x + residual.to(tl.float32), sum_ptr.dtype.element_ty)
        if not DENSE:
            tl.store(sum_ptr + (row * n + column), total, mask=inside)
        x = total.to(tl.float32)
    scale = inverse_root(tl.sum(x * x, axis=1)[:, None], n, eps)
    if TWICE:
        x = tl.load(x_ptr + (row * x_stride + column), mask=inside, other=0.0, eviction_policy="evict_first")
        x = x.to(tl.float32)
    if HAS_WEIGHT and not EARLY and not DENSE:
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0, eviction_policy=KEPT)
    out = _weighted(x * scale, weight, out_ptr.dtype.element_ty, HAS_WEIGHT)
    if HAS_RESIDUAL and DENSE:
        tl.store(sum_ptr + (row * n + column), total, mask=inside)
    tl.store(out_ptr + (row * n + column), out, mask=inside, cache_modifier=TO)


@triton.jit
def squares_kernel(
    x_ptr, residual_ptr, sum_ptr, partial_ptr, x_stride, residual_stride, n, steps,
    HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum of squares of one part of one row: steps blocks."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    squares = tl.zeros((BLOCK,), tl.float32)
    for step in range(steps):
        column = (part * steps + step) * BLOCK + tl.arange(0, BLOCK)
        inside = column < n
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        if HAS_RESIDUAL:
            x += tl.load(residual_ptr + row * residual_stride + column, mask=inside, other=0.0).to(tl.float32)
            total = narrow(x, sum_ptr.dtype.element_ty)
            tl.store(sum_ptr + row * n + column, total, mask=inside)
            x = total.to(tl.float32)
        squares += x * x
    tl.store(partial_ptr + row * tl.num_programs(1) + part, tl.sum(squares, axis=0))


@triton.jit
def scale_kernel(
    x_ptr, weight_ptr, partial_ptr, out_ptr, x_stride, n, eps,
    HAS_WEIGHT: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One block of one row, given the parts' sums of squares."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    squares = tl.sum(tl.load(partial_ptr + row * PARTS + tl.arange(0, PARTS)[None, :]), axis=1)[:, None]
    x = tl.load(x_ptr + row * x_stride + column, mask=column < n, other=0.0).to(tl.float32)
    scale = inverse_root(squares, n, eps)
    weight = 0.0
    if HAS_WEIGHT:
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0)
    out = _weighted(x * scale, weight, out_ptr.dtype.element_ty, HAS_WEIGHT)
    tl.store(out_ptr + row * n + column, out, mask=column < n)


@triton.jit
def _wide(x, AGAIN: tl.constexpr):
    """Return elements in fp32; with AGAIN, 16-bit ones anew, so that nobody keeps their fp32 from before."""
    if AGAIN and x.dtype.primitive_bitwidth == 16:
        x = again(x)
    return x.to(tl.float32)


@triton.jit
def _both(a, b, c, d):
    """Add two pairs: two sums in one reduction, whose exchange between wavefronts is waited for once."""
    return a + c, b + d


@triton.jit
def backward_kernel(
    grad_ptr, x_ptr, weight_ptr, extra_ptr, dx_ptr, partial_ptr, grad_stride, x_stride, extra_stride, rows, n, eps,
    HAS_WEIGHT: tl.constexpr, HAS_EXTRA: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
    RELOAD: tl.constexpr, AGAIN: tl.constexpr = False, STREAM: tl.constexpr = False,
):  # fmt: skip
    """Gradient of x, and this program's part of the weight's: each program walks over the rows in strides.

    Where registers are lacking, the weight is read again for each row (RELOAD), and 16-bit elements stay as they are
    across the reduction (AGAIN). With STREAM the gradient of x leaves the caches to others.
    """
    TO: tl.constexpr = ".cs" if STREAM else ""
    column = tl.arange(0, BLOCK)[None, :]
    if HAS_WEIGHT and not RELOAD:
        weights = tl.load(weight_ptr + column, mask=column < n, other=0.0)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = (start + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (column < n)
        xs = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0)
        grads = tl.load(grad_ptr + row * grad_stride + column, mask=inside, other=0.0)
        if HAS_WEIGHT and RELOAD:
            weights = tl.load(weight_ptr + column, mask=column < n, other=0.0)
        x = xs.to(tl.float32)
        weighted = grads.to(tl.float32)
        if HAS_WEIGHT:
            weighted *= _wide(weights, AGAIN)
        squares, inner = tl.reduce((x * x, weighted * x), 1, _both)
        scale = inverse_root(squares[:, None], n, eps)
        normal = _wide(xs, AGAIN) * scale
        grad = _wide(grads, AGAIN)
        weighted = grad * _wide(weights, AGAIN) if HAS_WEIGHT else grad
        if HAS_WEIGHT:
            sums += grad * normal
        dx = scale * (weighted - normal * (scale * inner[:, None] / n))
        if HAS_EXTRA:
            dx += tl.load(extra_ptr + row * extra_stride + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(dx_ptr + row * n + column, narrow(dx, dx_ptr.dtype.element_ty), mask=inside, cache_modifier=TO)
    if HAS_WEIGHT:
        total = tl.sum(sums, axis=0)[None, :]
        tl.store(partial_ptr + tl.program_id(0).to(tl.int64) * n + column, total, mask=column < n)
