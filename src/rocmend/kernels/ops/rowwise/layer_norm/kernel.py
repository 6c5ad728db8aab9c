"""The Triton kernels: rows in registers, rows split over programs, and the gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.column_sum import column_sum_kernel
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import as_rows, row_stride, tile
from rocmend.kernels.language import again, narrow
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.rowwise.rms_norm.kernel import inverse_root
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

OP = "layer_norm"


@triton.jit
def _affine(normal, weight, bias, dtype: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr):
    """Round to the output's type after normalising, weighting and adding the bias: MLX's order."""
    normal = narrow(normal, dtype)
    if HAS_WEIGHT:
        normal = narrow(normal.to(tl.float32) * weight.to(tl.float32), dtype)
    if HAS_BIAS:
        normal = narrow(normal.to(tl.float32) + bias.to(tl.float32), dtype)
    return normal


@triton.jit
def _loaded(ptr, column, n, GIVEN: tl.constexpr, POLICY: tl.constexpr):
    """Return a weight or a bias; zero where none is given."""
    if GIVEN:
        found = tl.load(ptr + column, mask=column < n, other=0.0, eviction_policy=POLICY)
    else:
        found = 0.0
    return found


@triton.jit
def held_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, rows, n, eps,
    HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    EARLY: tl.constexpr = False, RELOAD: tl.constexpr = False, AGAIN: tl.constexpr = False, FULL: tl.constexpr = False,
):  # fmt: skip
    """ROWS rows a program, read once from memory; the variance is that of the centred row.

    With EARLY weight and bias are on their way before a sum is waited for. With RELOAD a row is read again from the
    caches, which keep it that long and no longer; with AGAIN its 16-bit elements stay as they are across the sums:
    either way registers hold more rows at a time. FULL: there are no rows and columns but those of whole tiles.
    """
    FIRST: tl.constexpr = "evict_last" if RELOAD else "evict_first" if AGAIN else ""
    KEPT: tl.constexpr = "evict_last" if RELOAD or AGAIN else ""
    TO: tl.constexpr = ".cs" if RELOAD or AGAIN else ""
    if FULL:
        n = BLOCK
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    if FULL:
        inside = tl.full((ROWS, BLOCK), True, tl.int1)
    weight = 0.0
    bias = 0.0
    if EARLY:
        weight = _loaded(weight_ptr, column, n, HAS_WEIGHT, KEPT)
        bias = _loaded(bias_ptr, column, n, HAS_BIAS, KEPT)
    xs = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0, eviction_policy=FIRST)
    mean = tl.sum(xs.to(tl.float32), axis=1)[:, None] / n
    if AGAIN:
        xs = again(xs)
    centred = tl.where(column < n, xs.to(tl.float32) - mean, 0.0)
    scale = inverse_root(tl.sum(centred * centred, axis=1)[:, None], n, eps)
    if AGAIN:
        centred = again(xs).to(tl.float32) - mean
    if RELOAD:
        xs = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0, eviction_policy="evict_first")
        centred = xs.to(tl.float32) - mean
    if not EARLY:
        weight = _loaded(weight_ptr, column, n, HAS_WEIGHT, KEPT)
        bias = _loaded(bias_ptr, column, n, HAS_BIAS, KEPT)
    out = _affine(centred * scale, weight, bias, out_ptr.dtype.element_ty, HAS_WEIGHT, HAS_BIAS)
    tl.store(out_ptr + row * n + column, out, mask=inside, cache_modifier=TO)


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
    weight = _loaded(weight_ptr, column, n, HAS_WEIGHT, "")
    bias = _loaded(bias_ptr, column, n, HAS_BIAS, "")
    out = _affine(normal, weight, bias, out_ptr.dtype.element_ty, HAS_WEIGHT, HAS_BIAS)
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


def _output(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> allocate.Output:
    """Return a function that allocates the result."""
    dtype = x.dtype
    if weight is not None:
        dtype = torch.promote_types(dtype, weight.dtype)
        dtype = dtype if bias is None else torch.promote_types(dtype, bias.dtype)
    return allocate.Output(x.shape, dtype, x.device)


@Planner
def held(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Plan a call for rows that are held in registers; see ``function.layer_norm``."""
    output = _output(x, weight, bias)
    if x.numel() == 0:
        return lambda *_: output()
    wide = as_rows(x)
    rows, n = wide.shape
    config = config_for(OP, "held", width_class(n), executor.target_for(x.device))
    block, together = tile(n, config)
    constants: dict[str, int] = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    constants |= {"BLOCK": block, "ROWS": together} | _ways(config, x.element_size(), block)
    if config.get("full", 0) and rows % together == 0 and n == block:
        constants |= {"EARLY": True, "FULL": True}
    numbers = (wide.stride(0), rows, n, float(eps))
    plan = LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, numbers)
    seen = row_stride(x) is not None
    return plan.into(output, lambda x, weight, bias, _eps: (x if seen else as_rows(x), _dense(weight), _dense(bias)))


def _dense(vector: Tensor | None) -> Tensor | None:
    return None if vector is None else vector.contiguous()


def _ways(config: Config, width: int, block: int) -> dict[str, int]:
    """Return how a row that is needed twice is kept: as 16-bit elements, from a length on, or in the caches."""
    packed = width == 2 and block >= config.get("again_from", 1 << 30)
    return {"AGAIN": packed, "RELOAD": bool(config.get("reload", 0)) and not packed}


@Planner
def split(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Plan a call for rows that are split over programs; see ``function.layer_norm``."""
    output = _output(x, weight, bias)
    if x.numel() == 0:
        return lambda *_: output()
    wide = as_rows(x)
    (rows, n), stride = wide.shape, wide.stride(0)
    config = config_for(OP, "split", "*", executor.target_for(x.device))
    parts = cdiv(n, config["BLOCK"])
    means, squares = (allocate.Output((rows, parts), torch.float32, x.device) for _ in range(2))
    moments = LaunchPlan(moments_kernel, (rows, parts), {}, config, (stride, n))
    constants = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None, "PARTS": next_power_of_2(parts)}
    scaled = LaunchPlan(scale_kernel, (rows, parts), constants, config, (stride, n, parts, eps))

    def call(x: Tensor, weight: Tensor | None, bias: Tensor | None, _eps: float) -> Tensor:
        out, mean, square, wide = output(), means(), squares(), as_rows(x)
        moments((wide, mean, square))
        scaled((wide, _dense(weight), _dense(bias), mean, square, out))
        return out

    return call


def backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Launch the gradients' kernels; see ``function.layer_norm_backward``."""
    n = x.shape[-1]
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    dweight = None if weight is None else allocate.empty((n,), dtype=weight.dtype, device=x.device)
    dbias = None if bias is None else allocate.empty((n,), dtype=bias.dtype, device=x.device)
    if x.numel() == 0:
        return dx, None if dweight is None else dweight.zero_(), None if dbias is None else dbias.zero_()
    wide, grads = as_rows(x), as_rows(grad)
    rows = wide.shape[0]
    target = executor.target_for(x.device)
    config = config_for(OP, "backward", width_class(n), target)
    block, together = tile(n, config)
    programs = min(cdiv(rows, together), target.units * config["programs_per_unit"])
    products, sums = (
        None if vector is None else allocate.empty((programs, n), dtype=torch.float32, device=x.device)
        for vector in (weight, bias)
    )
    launch(
        backward_kernel,
        (programs,),
        (
            grads, wide, _dense(weight), dx, products, sums,
            grads.stride(0), wide.stride(0), rows, n, eps,
        ),
        {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None, "BLOCK": block, "ROWS": together},
        config,
    )  # fmt: skip
    finish = config_for(OP, "column_sum", "*", target)
    for partial, out in ((products, dweight), (sums, dbias)):
        if partial is not None:
            launch(column_sum_kernel, (cdiv(n, finish["COLUMNS"]),), (partial, out, programs, n), {}, finish)
    return dx, dweight, dbias
