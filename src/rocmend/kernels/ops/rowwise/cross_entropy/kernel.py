"""The Triton kernels: losses in one walk over the logits, or over their parts; the gradient in one pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.online import merge, walk, whole
from rocmend.kernels.common.rows import splits, tile
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.logsumexp.kernel import VECTOR, parts_of, shape_of_tile
from rocmend.kernels.tuning import config_for


@triton.jit
def _finish(
    x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, row, rows, n, ignore, smoothing, top, sums, total,
    SMOOTH: tl.constexpr,
):  # fmt: skip
    """Store the losses of rows, and for the gradient the largest logit and the logarithm of the sum relative to it.

    The largest logit is taken off before the logarithm is added: a loss depends on gaps alone, and among large logits
    the sum of both would lose it. So would the gradient.
    """
    target = tl.load(target_ptr + row, mask=row < rows, other=0).to(tl.int64)
    used = (target != ignore) & (row < rows)
    known = (target >= 0) & (target < n)
    chosen = tl.load(x_ptr + row * x_stride + target, mask=used & known, other=0.0).to(tl.float32)
    low = tl.log(sums)
    loss = low - (chosen - top)
    if SMOOTH:
        loss = (1.0 - smoothing) * loss + smoothing * (low - (total / n - top))
    loss = tl.where(known, loss, float("nan"))
    tl.store(loss_ptr + row, tl.where(target != ignore, loss, 0.0), mask=row < rows)
    tl.store(levels_ptr + 2 * row, top, mask=row < rows)
    tl.store(levels_ptr + 2 * row + 1, low, mask=row < rows)


@triton.jit
def held_kernel(
    x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, rows, n, ignore, smoothing,
    SMOOTH: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """ROWS rows a program, in registers."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    top, sums, total = whole(x_ptr, x_stride, row, rows, n, SMOOTH, BLOCK)
    _finish(
        x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, row, rows, n, ignore, smoothing, top, sums, total, SMOOTH
    )


@triton.jit
def loss_kernel(
    x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, rows, n, steps, ignore, smoothing,
    SMOOTH: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """ROWS whole rows a program."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    top, sums, total = walk(x_ptr, x_stride, row, rows, n, 0, steps, SMOOTH, ROWS, BLOCK, VECTOR, STAGES)
    _finish(
        x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, row, rows, n, ignore, smoothing, top, sums, total, SMOOTH
    )


@triton.jit
def merge_kernel(
    x_ptr, target_ptr, top_ptr, sum_ptr, total_ptr, loss_ptr, levels_ptr, x_stride, rows, n, ignore, smoothing,
    SMOOTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One row, from the sums of its parts."""
    row = tl.program_id(0).to(tl.int64) + tl.arange(0, 1)[:, None]
    top, sums = merge(top_ptr, sum_ptr, row, rows, PARTS)
    total = tl.zeros((1, 1), tl.float32)
    if SMOOTH:
        total = tl.sum(tl.load(total_ptr + row * PARTS + tl.arange(0, PARTS)[None, :]), axis=1)[:, None]
    _finish(
        x_ptr, target_ptr, loss_ptr, levels_ptr, x_stride, row, rows, n, ignore, smoothing, top, sums, total, SMOOTH
    )


@triton.jit
def backward_kernel(
    grad_ptr, x_ptr, target_ptr, levels_ptr, dx_ptr, x_stride, rows, n, ignore, smoothing,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write grad · (softmax - (1 - smoothing) · chosen - smoothing / n), one tile."""
    tiles = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % tiles) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    target = tl.load(target_ptr + row, mask=row < rows, other=0).to(tl.int64)
    top = tl.load(levels_ptr + 2 * row, mask=row < rows, other=0.0)
    low = tl.load(levels_ptr + 2 * row + 1, mask=row < rows, other=0.0)
    grad = tl.load(grad_ptr + row, mask=row < rows, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
    wanted = tl.where(column == target, 1.0 - smoothing, 0.0) + smoothing / n
    dx = tl.where(target == ignore, 0.0, grad * (tl.exp((x - top) - low) - wanted))
    tl.store(dx_ptr + row * n + column, narrow(dx, dx_ptr.dtype.element_ty), mask=inside)


def _outputs(x: Tensor) -> tuple[Tensor, Tensor]:
    """Allocate the losses of x and what the gradient needs of each row."""
    rows = x.shape[0]
    loss = allocate.empty((rows,), dtype=torch.float32, device=x.device)
    return loss, allocate.empty((rows, 2), dtype=torch.float32, device=x.device)


def held(x: Tensor, targets: Tensor, ignore_index: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Compute losses of x ``[rows, n]`` with adjacent elements in a row, which registers hold, in fp32.

    Returns:
        Losses ``[rows]``, and ``[rows, 2]``: the largest logit, and the logarithm of the sum relative to it.
    """
    rows, n = x.shape
    loss, levels = _outputs(x)
    config = config_for("cross_entropy", "held", width_class(n), executor.target_for(x.device))
    block, together = tile(n, config)
    launch(
        held_kernel, (cdiv(rows, together),),
        (x, targets, loss, levels, x.stride(0), rows, n, ignore_index, smoothing),
        {"SMOOTH": smoothing != 0.0, "BLOCK": block, "ROWS": together}, config,
    )  # fmt: skip
    return loss, levels


def walk_rows(x: Tensor, targets: Tensor, ignore_index: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Compute the same of rows that are walked over, whole or in parts."""
    rows, n = x.shape
    loss, levels = _outputs(x)
    target = executor.target_for(x.device)
    smooth = smoothing != 0.0
    config = config_for("cross_entropy", "walk", "*", target)
    block, together = shape_of_tile(n, config)
    parts = splits(cdiv(rows, together), n, 2 * config["tile"], target)
    if parts == 1:
        launch(
            loss_kernel, (cdiv(rows, together),),
            (x, targets, loss, levels, x.stride(0), rows, n, cdiv(n, block), ignore_index, smoothing),
            {"SMOOTH": smooth, "ROWS": together, "BLOCK": block, "VECTOR": VECTOR}, config,
        )  # fmt: skip
        return loss, levels
    top, sums, total = parts_of(x, parts, config, total=smooth)
    launch(
        merge_kernel, (rows,),
        (x, targets, top, sums, total, loss, levels, x.stride(0), rows, n, ignore_index, smoothing),
        {"SMOOTH": smooth, "PARTS": parts}, config,
    )  # fmt: skip
    return loss, levels


def backward(grad: Tensor, x: Tensor, targets: Tensor, levels: Tensor, ignore_index: int, smoothing: float) -> Tensor:
    """Return the gradient of x; ``grad`` is ``[rows]``, ``levels`` as ``held`` returns it, both contiguous."""
    rows, n = x.shape
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    config = config_for("cross_entropy", "backward", "*", executor.target_for(x.device))
    block, together = shape_of_tile(n, config)
    launch(
        backward_kernel, (cdiv(rows, together) * cdiv(n, block),),
        (grad, x, targets, levels, dx, x.stride(0), rows, n, ignore_index, smoothing),
        {"ROWS": together, "BLOCK": block}, config,
    )  # fmt: skip
    return dx
