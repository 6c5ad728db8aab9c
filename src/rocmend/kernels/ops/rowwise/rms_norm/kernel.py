"""The Triton kernels: rows in registers, rows split over programs, and the gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.column_sum import column_sum_kernel
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import as_rows, row_stride, splits, tile
from rocmend.kernels.language import again, narrow
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

OP = "rms_norm"
_FEW = 1 << 31  # what the kernel counts in 32 bits


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
    """Scale one block of one row by the parts' sums of squares."""
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


Launches = Callable[[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor], None]
"""Launches with x, a residual, the weight, where their sum goes, and where the result goes."""


def _dense(x: Tensor, residual: Tensor | None, weight: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return rows, and the weight, with adjacent elements: views where strides allow it."""
    added = None if residual is None else as_rows(residual)
    return as_rows(x), added, None if weight is None else weight.contiguous()


def held_launches(x: Tensor, residual: Tensor | None, weight: Tensor | None, eps: float) -> Launches:
    """Plan the launch for rows that are held in registers.

    Args:
        x: ``[..., n]``, not empty.
        residual: Shape and type of x, added to it first; or None.
        weight: ``[n]`` or None.
        eps: Added to the mean of squares.
    """
    strides = row_stride(x), 0 if residual is None else row_stride(residual)
    copied = None in strides or (weight is not None and weight.stride(0) != 1)
    if copied:
        wide, more, _ = _dense(x, residual, weight)
        # A row of one element may keep another stride of its column, which the kernel does not use.
        strides = row_stride(wide) or wide.stride(0), 0 if more is None else row_stride(more) or more.stride(0)
    n, added = x.shape[-1], residual is not None
    rows, block, kind = x.numel() // n, next_power_of_2(n), width_class(n)
    config = config_for(OP, "held", kind if x.element_size() < 4 else f"{kind}-32", executor.target_for(x.device))
    held_elements = config.get("tile", 1)
    together = max(1, (config.get("tile_added", held_elements) if added else held_elements) // block)
    full = bool(config.get("full", 0)) and rows % together == 0 and n == block
    constants = {
        "HAS_RESIDUAL": added,
        "HAS_WEIGHT": weight is not None,
        "BLOCK": block,
        "ROWS": together,
        "FULL": full,
        "DENSE": full and added and strides == (n, n) and rows * n < _FEW,
    }
    plan = LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, (*strides, rows, n, float(eps)))
    if copied:
        return lambda x, residual, weight, total, out: plan((*_dense(x, residual, weight), total, out))
    return lambda *tensors: plan(tensors)


def split_launches(x: Tensor, residual: Tensor | None, weight: Tensor | None, eps: float) -> Launches:
    """Plan the launches for rows that are split over programs; see ``held_launches``."""
    target = executor.target_for(x.device)
    wide, added, _ = _dense(x, residual, weight)
    rows, n = wide.shape
    config = config_for(OP, "split", "*", target)
    block = config["BLOCK"]
    parts = splits(rows, n, block, target)
    partial = allocate.Output((rows, parts), torch.float32, x.device)
    numbers = (wide.stride(0), 0 if added is None else added.stride(0), n, cdiv(cdiv(n, block), parts))
    squares = LaunchPlan(squares_kernel, (rows, parts), {"HAS_RESIDUAL": added is not None}, config, numbers)
    constants = {"HAS_WEIGHT": weight is not None, "PARTS": parts}
    stride = wide.stride(0) if added is None else n
    scaled = LaunchPlan(scale_kernel, (rows, cdiv(n, block)), constants, config, (stride, n, eps))

    def launches(x: Tensor, residual: Tensor | None, weight: Tensor | None, total: Tensor | None, out: Tensor) -> None:
        x, residual, weight = _dense(x, residual, weight)
        sums = partial()
        squares((x, residual, total, sums))
        scaled((x if total is None else total, weight, sums, out))

    return launches


def _run(plan: Callable[..., Launches]) -> Planner:
    """Make an implementation of a plan of launches."""

    @Planner
    def run(x: Tensor, weight: Tensor | None, eps: float) -> Callable[..., Tensor]:
        """Plan a call; see ``function.rms_norm``."""
        dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
        output = allocate.Output(x.shape, dtype, x.device)
        if x.numel() == 0:
            return lambda *_: output()
        launches = plan(x, None, weight, eps)

        def call(x: Tensor, weight: Tensor | None, _eps: float) -> Tensor:
            out = output()
            launches(x, None, weight, None, out)
            return out

        return call

    return run


held, split = map(_run, (held_launches, split_launches))


def _stages(config: Config, target: Target, elements: int, read: Sequence[Tensor | None]) -> int:
    """Return the record's stages, fewer where what is copied ahead would not fit in local memory; two gain nothing."""
    ahead = elements * sum(tensor.element_size() for tensor in read if tensor is not None)
    stages = min(int(config["STAGES"]), 1 + target.lds_bytes * 7 // 8 // ahead)
    return stages if stages > 2 else 1


def backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, eps: float, extra: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Launch the gradients' kernels; see ``function.rms_norm_backward``. ``extra`` is added to the gradient of x."""
    n = x.shape[-1]
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    dweight = None if weight is None else allocate.empty((n,), dtype=weight.dtype, device=x.device)
    if x.numel() == 0:
        return dx, None if dweight is None else dweight.zero_()
    wide, grads = as_rows(x), as_rows(grad)
    extras = None if extra is None else as_rows(extra)
    rows = wide.shape[0]
    target = executor.target_for(x.device)
    config = config_for(OP, "backward", width_class(n), target)
    block, together = tile(n, config)
    programs = min(cdiv(rows, together), target.units * config["programs_per_unit"])
    partial = None if weight is None else allocate.empty((programs, n), dtype=torch.float32, device=x.device)
    reload = block >= config.get("reload_from", 1 << 30)
    launch(
        backward_kernel,
        (programs,),
        (
            grads, wide, None if weight is None else weight.contiguous(), extras, dx, partial,
            grads.stride(0), wide.stride(0), 0 if extras is None else extras.stride(0), rows, n, eps,
        ),
        {
            "HAS_WEIGHT": weight is not None, "HAS_EXTRA": extras is not None, "BLOCK": block, "ROWS": together,
            "RELOAD": reload,
            "STAGES": _stages(config, target, together * block, (grads, wide, extras, weight if reload else None)),
        },
        config,
    )  # fmt: skip
    if partial is not None:
        finish = config_for(OP, "column_sum", "*", target)
        launch(column_sum_kernel, (cdiv(n, finish["COLUMNS"]),), (partial, dweight, programs, n), {}, finish)
    return dx, dweight
