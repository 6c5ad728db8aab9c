"""The Triton kernels: rows in registers, or given what their parts came to; the gradients likewise."""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.online import log_sum, merge
from rocmend.kernels.common.rows import as_rows, splits, tile
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.rowwise.logsumexp.kernel import parts_of
from rocmend.kernels.ops.rowwise.softmax import LONGEST
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


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
    """One block of one row, from the sums of its parts."""
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


@Planner
def held(x: Tensor, log: bool, shape: torch.Size | None = None) -> Callable[..., Tensor]:
    """Plan the softmax of x ``[rows, n]`` with adjacent elements in a row, or its logarithm, in registers.

    Args:
        x: ``[rows, n]``.
        log: The logarithm is asked for.
        shape: The result's; the calls may then be given x in that shape.
    """
    rows, n = x.shape
    output = allocate.Output(shape or x.shape, x.dtype, x.device)
    config = config_for("softmax", "held", width_class(n, LONGEST), executor.target_for(x.device))
    block, together = tile(n, config)
    constants = {"LOG": log, "BLOCK": block, "ROWS": together}
    plan = LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, (x.stride(0), rows, n))
    return plan.into(output, lambda x, *_: (x,))


@Planner
def split(x: Tensor, log: bool, shape: torch.Size | None = None) -> Callable[..., Tensor]:
    """Plan the same of rows that are split over programs; see ``held``."""
    rows, n = x.shape
    stride = x.stride(0)
    output = allocate.Output(shape or x.shape, x.dtype, x.device)
    target = executor.target_for(x.device)
    config = config_for("softmax", "split", "*", target)
    parts = splits(rows, n, config["tile"], target)
    constants = {"LOG": log, "PARTS": parts, "BLOCK": config["BLOCK"]}
    grid = (rows, cdiv(n, config["BLOCK"]))
    applied = LaunchPlan(apply_kernel, grid, constants, config, (stride, rows, n))

    def in_parts(x: Tensor, _log: bool, _shape: torch.Size | None = None) -> Tensor:
        out = output()
        top, sums, _ = parts_of(x.as_strided((rows, n), (stride, 1)), parts, config)
        applied((x, top, sums, out))
        return out

    return in_parts


def backward(grad: Tensor, out: Tensor, log: bool) -> Tensor:
    """Return the gradient of x, given that of the output and the output ``[rows, n]``, contiguous."""
    rows, n = out.shape
    grad = as_rows(grad)
    dx = allocate.empty(out.shape, dtype=out.dtype, device=out.device)
    config = config_for("softmax", "backward", width_class(n), executor.target_for(out.device))
    block, together = tile(n, config)
    launch(
        backward_kernel, (cdiv(rows, together),), (grad, out, dx, grad.stride(0), rows, n),
        {"LOG": log, "BLOCK": block, "ROWS": together}, config,
    )  # fmt: skip
    return dx


def split_backward(grad: Tensor, out: Tensor, log: bool) -> Tensor:
    """Return the same for rows that are split over programs."""
    rows, n = out.shape
    grad = as_rows(grad)
    dx = allocate.empty(out.shape, dtype=out.dtype, device=out.device)
    target = executor.target_for(out.device)
    config = config_for("softmax", "split", "*", target)
    block = config["BLOCK"]
    parts = splits(rows, n, block, target)
    partial = allocate.empty((rows, parts), dtype=torch.float32, device=out.device)
    steps = cdiv(cdiv(n, block), parts)
    constants = {"LOG": log, "BLOCK": block}
    launch(products_kernel, (rows, parts), (grad, out, partial, grad.stride(0), n, steps), constants, config)
    launch(
        apply_backward_kernel, (rows, cdiv(n, block)), (grad, out, partial, dx, grad.stride(0), n),
        {**constants, "PARTS": parts}, config,
    )  # fmt: skip
    return dx
