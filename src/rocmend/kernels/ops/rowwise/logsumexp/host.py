"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.online import parts_kernel
from rocmend.kernels.common.rows import splits, tile
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.logsumexp.kernel import backward_kernel, held_kernel, merge_kernel, walk_kernel
from rocmend.kernels.tuning import Config, config_for

VECTOR = 8
"""Neighbours that share a base while a row is walked: what a lane loads at once in half types."""


def shape_of_tile(n: int, config: Config) -> tuple[int, int]:
    """Return columns and rows of a program's tile of ``config["tile"]`` elements."""
    block = min(max(next_power_of_2(n), VECTOR), config["tile"])
    return block, config["tile"] // block


def parts_of(
    x: torch.Tensor, parts: int, config: Config, *, total: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return largest elements, sums of exponentials and plain sums of the parts of rows, each ``[rows, parts]``."""
    rows, n = x.shape
    block, together = shape_of_tile(n, config)
    top, sums = (allocate.empty((rows, parts), dtype=torch.float32, device=x.device) for _ in range(2))
    plain = allocate.empty((rows, parts), dtype=torch.float32, device=x.device) if total else None
    launch(
        parts_kernel,
        (cdiv(rows, together), parts),
        (x, top, sums, plain, x.stride(0), rows, n, cdiv(cdiv(n, block), parts)),
        {"TOTAL": total, "ROWS": together, "BLOCK": block, "VECTOR": VECTOR},
        config,
    )
    return top, sums, plain


def run(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return ``[rows]`` for x ``[rows, n]`` with adjacent elements in a row, of ``dtype``."""
    rows, n = x.shape
    out = allocate.empty((rows,), dtype=dtype, device=x.device)
    target = executor.target_for(x.device)
    kind = width_class(n)
    if kind != "split":
        config = config_for("logsumexp", "held", kind, target)
        block, together = tile(n, config)
        launch(
            held_kernel,
            (cdiv(rows, together),),
            (x, out, x.stride(0), rows, n),
            {"BLOCK": block, "ROWS": together},
            config,
        )
        return out
    config = config_for("logsumexp", "walk", "*", target)
    block, together = shape_of_tile(n, config)
    parts = splits(cdiv(rows, together), n, 2 * config["tile"], target)
    if parts == 1:
        launch(
            walk_kernel,
            (cdiv(rows, together),),
            (x, out, x.stride(0), rows, n, cdiv(n, block)),
            {"ROWS": together, "BLOCK": block, "VECTOR": VECTOR},
            config,
        )
        return out
    top, sums, _ = parts_of(x, parts, config)
    launch(merge_kernel, (rows,), (top, sums, out, rows), {"PARTS": parts, "ROWS": 1}, config)
    return out


def run_backward(grad: torch.Tensor, x: torch.Tensor, lse: torch.Tensor) -> torch.Tensor:
    """Return the gradient of x ``[rows, n]``; ``grad`` and ``lse`` are ``[rows]``, contiguous."""
    rows, n = x.shape
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    config = config_for("logsumexp", "backward", "*", executor.target_for(x.device))
    block, together = shape_of_tile(n, config)
    launch(
        backward_kernel,
        (cdiv(rows, together) * cdiv(n, block),),
        (grad, x, lse, dx, x.stride(0), rows, n),
        {"ROWS": together, "BLOCK": block},
        config,
    )
    return dx
