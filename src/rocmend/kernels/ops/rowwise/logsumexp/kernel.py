"""The Triton kernels: one walk over each row, or over its parts; the gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.online import log_sum, merge, parts_kernel, walk, whole
from rocmend.kernels.common.rows import splits, tile
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning import Config, config_for

VECTOR = 8
"""Neighbours that share a base while a row is walked: what a lane loads at once in half types."""


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


def shape_of_tile(n: int, config: Config) -> tuple[int, int]:
    """Return columns and rows of a program's tile of ``config["tile"]`` elements."""
    block = min(max(next_power_of_2(n), VECTOR), config["tile"])
    return block, config["tile"] // block


def parts_of(x: Tensor, parts: int, config: Config, *, total: bool = False) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return largest elements, sums of exponentials and plain sums of the parts of rows, each ``[rows, parts]``."""
    rows, n = x.shape
    block, together = shape_of_tile(n, config)
    top, sums = (allocate.empty((rows, parts), dtype=torch.float32, device=x.device) for _ in range(2))
    plain = allocate.empty((rows, parts), dtype=torch.float32, device=x.device) if total else None
    launch(
        parts_kernel, (cdiv(rows, together), parts),
        (x, top, sums, plain, x.stride(0), rows, n, cdiv(cdiv(n, block), parts)),
        {"TOTAL": total, "ROWS": together, "BLOCK": block, "VECTOR": VECTOR}, config,
    )  # fmt: skip
    return top, sums, plain


def held(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``[rows]`` of ``dtype`` for x ``[rows, n]`` with adjacent elements in a row, which registers hold."""
    rows, n = x.shape
    out = allocate.empty((rows,), dtype=dtype, device=x.device)
    config = config_for("logsumexp", "held", width_class(n), executor.target_for(x.device))
    block, together = tile(n, config)
    launch(
        held_kernel, (cdiv(rows, together),), (x, out, x.stride(0), rows, n), {"BLOCK": block, "ROWS": together},
        config,
    )  # fmt: skip
    return out


def walk_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the same for rows that are walked over, whole or in parts."""
    rows, n = x.shape
    out = allocate.empty((rows,), dtype=dtype, device=x.device)
    target = executor.target_for(x.device)
    config = config_for("logsumexp", "walk", "*", target)
    block, together = shape_of_tile(n, config)
    parts = splits(cdiv(rows, together), n, 2 * config["tile"], target)
    if parts == 1:
        launch(
            walk_kernel, (cdiv(rows, together),), (x, out, x.stride(0), rows, n, cdiv(n, block)),
            {"ROWS": together, "BLOCK": block, "VECTOR": VECTOR}, config,
        )  # fmt: skip
        return out
    top, sums, _ = parts_of(x, parts, config)
    launch(merge_kernel, (rows,), (top, sums, out, rows), {"PARTS": parts, "ROWS": 1}, config)
    return out


def backward(grad: Tensor, x: Tensor, lse: Tensor) -> Tensor:
    """Return the gradient of x ``[rows, n]``; ``grad`` and ``lse`` are ``[rows]``, contiguous."""
    rows, n = x.shape
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    config = config_for("logsumexp", "backward", "*", executor.target_for(x.device))
    block, together = shape_of_tile(n, config)
    launch(
        backward_kernel, (cdiv(rows, together) * cdiv(n, block),), (grad, x, lse, dx, x.stride(0), rows, n),
        {"ROWS": together, "BLOCK": block}, config,
    )  # fmt: skip
    return dx
