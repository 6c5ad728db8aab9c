"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import splits, tile
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.cross_entropy.kernel import backward_kernel, held_kernel, loss_kernel, merge_kernel
from rocmend.kernels.ops.rowwise.logsumexp.host import VECTOR, parts_of, shape_of_tile
from rocmend.kernels.tuning import config_for


def run(
    x: torch.Tensor, targets: torch.Tensor, ignore_index: int, smoothing: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what stands for x ``[rows, n]`` with adjacent elements in a row, in fp32.

    Returns:
        Losses ``[rows]``, and ``[rows, 2]``: the largest logit, and the logarithm of the sum relative to it.
    """
    rows, n = x.shape
    loss = allocate.empty((rows,), dtype=torch.float32, device=x.device)
    levels = allocate.empty((rows, 2), dtype=torch.float32, device=x.device)
    target = executor.target_for(x.device)
    smooth = smoothing != 0.0
    kind = width_class(n)
    if kind != "split":
        config = config_for("cross_entropy", "held", kind, target)
        block, together = tile(n, config)
        launch(
            held_kernel,
            (cdiv(rows, together),),
            (x, targets, loss, levels, x.stride(0), rows, n, ignore_index, smoothing),
            {"SMOOTH": smooth, "BLOCK": block, "ROWS": together},
            config,
        )
        return loss, levels
    config = config_for("cross_entropy", "walk", "*", target)
    block, together = shape_of_tile(n, config)
    parts = splits(cdiv(rows, together), n, 2 * config["tile"], target)
    if parts == 1:
        launch(
            loss_kernel,
            (cdiv(rows, together),),
            (x, targets, loss, levels, x.stride(0), rows, n, cdiv(n, block), ignore_index, smoothing),
            {"SMOOTH": smooth, "ROWS": together, "BLOCK": block, "VECTOR": VECTOR},
            config,
        )
        return loss, levels
    top, sums, total = parts_of(x, parts, config, total=smooth)
    launch(
        merge_kernel,
        (rows,),
        (x, targets, top, sums, total, loss, levels, x.stride(0), rows, n, ignore_index, smoothing),
        {"SMOOTH": smooth, "PARTS": parts},
        config,
    )
    return loss, levels


def run_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    targets: torch.Tensor,
    levels: torch.Tensor,
    ignore_index: int,
    smoothing: float,
) -> torch.Tensor:
    """Return the gradient of x; ``grad`` is ``[rows]``, ``levels`` as ``run`` returns it, both contiguous."""
    rows, n = x.shape
    dx = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    config = config_for("cross_entropy", "backward", "*", executor.target_for(x.device))
    block, together = shape_of_tile(n, config)
    launch(
        backward_kernel,
        (cdiv(rows, together) * cdiv(n, block),),
        (grad, x, targets, levels, dx, x.stride(0), rows, n, ignore_index, smoothing),
        {"ROWS": together, "BLOCK": block},
        config,
    )
    return dx
