"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import as_rows, splits, tile
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.rowwise.logsumexp.host import parts_of
from rocmend.kernels.ops.rowwise.softmax import LONGEST
from rocmend.kernels.ops.rowwise.softmax.kernel import (
    apply_backward_kernel,
    apply_kernel,
    backward_kernel,
    held_kernel,
    products_kernel,
)
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


@Planner
def run(x: torch.Tensor, log: bool, shape: torch.Size | None = None) -> Callable[..., torch.Tensor]:
    """Plan the softmax of x ``[rows, n]`` with adjacent elements in a row, or its logarithm.

    Args:
        x: ``[rows, n]``.
        log: The logarithm is asked for.
        shape: The result's; the calls may then be given x in that shape.
    """
    rows, n = x.shape
    stride = x.stride(0)
    output = allocate.Output(shape or x.shape, x.dtype, x.device)
    target = executor.target_for(x.device)
    kind = width_class(n, LONGEST)
    if kind != "split":
        config = config_for("softmax", "held", kind, target)
        block, together = tile(n, config)
        constants = {"LOG": log, "BLOCK": block, "ROWS": together}
        plan = LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, (stride, rows, n))

        def in_one(x: torch.Tensor, _log: bool, _shape: torch.Size | None = None) -> torch.Tensor:
            out = output()
            plan((x, out))
            return out

        return in_one
    config = config_for("softmax", "split", "*", target)
    parts = splits(rows, n, config["tile"], target)
    constants = {"LOG": log, "PARTS": parts, "BLOCK": config["BLOCK"]}
    grid = (rows, cdiv(n, config["BLOCK"]))
    applied = LaunchPlan(apply_kernel, grid, constants, config, (stride, rows, n))

    def in_parts(x: torch.Tensor, _log: bool, _shape: torch.Size | None = None) -> torch.Tensor:
        out = output()
        top, sums, _ = parts_of(x.as_strided((rows, n), (stride, 1)), parts, config)
        applied((x, top, sums, out))
        return out

    return in_parts


def run_backward(grad: torch.Tensor, out: torch.Tensor, log: bool) -> torch.Tensor:
    """Return the gradient of x, given that of the output and the output ``[rows, n]``, contiguous."""
    rows, n = out.shape
    grad = as_rows(grad)
    dx = allocate.empty(out.shape, dtype=out.dtype, device=out.device)
    target = executor.target_for(out.device)
    kind = width_class(n)
    if kind != "split":
        config = config_for("softmax", "backward", kind, target)
        block, together = tile(n, config)
        launch(
            backward_kernel,
            (cdiv(rows, together),),
            (grad, out, dx, grad.stride(0), rows, n),
            {"LOG": log, "BLOCK": block, "ROWS": together},
            config,
        )
        return dx
    config = config_for("softmax", "split", "*", target)
    block = config["BLOCK"]
    parts = splits(rows, n, block, target)
    partial = allocate.empty((rows, parts), dtype=torch.float32, device=out.device)
    steps = cdiv(cdiv(n, block), parts)
    constants = {"LOG": log, "BLOCK": block}
    launch(products_kernel, (rows, parts), (grad, out, partial, grad.stride(0), n, steps), constants, config)
    launch(
        apply_backward_kernel,
        (rows, cdiv(n, block)),
        (grad, out, partial, dx, grad.stride(0), n),
        {**constants, "PARTS": parts},
        config,
    )
    return dx
