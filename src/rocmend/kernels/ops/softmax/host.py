"""Launch the Triton kernels."""

from __future__ import annotations

import functools

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.plans import Plan, carry_out, plan
from rocmend.kernels.common.rows import as_rows, ceil_div, splits, tile, width_class
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.logsumexp.host import parts_of
from rocmend.kernels.ops.softmax import LONGEST
from rocmend.kernels.ops.softmax.kernel import (
    apply_backward_kernel,
    apply_kernel,
    backward_kernel,
    held_kernel,
    products_kernel,
)
from rocmend.kernels.tuning import Config, config_for


@functools.lru_cache(maxsize=4096)
def _held(config: Config, rows: int, n: int, log: bool) -> Plan:
    block, together = tile(n, config)
    return plan(held_kernel, (ceil_div(rows, together),), {"LOG": log, "BLOCK": block, "ROWS": together}, config)


def run(x: torch.Tensor, log: bool) -> torch.Tensor:
    """Return the softmax of x ``[rows, n]`` with adjacent elements in a row, or its logarithm."""
    rows, n = x.shape
    out = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    target = executor.target_for(x.device)
    kind = width_class(n, LONGEST)
    if kind != "split":
        config = config_for("softmax", "held", kind, target)
        carry_out(_held(config, rows, n, log), (x, out, x.stride(0), rows, n))
        return out
    config = config_for("softmax", "split", "*", target)
    parts = splits(rows, n, config["tile"], target)
    top, sums, _ = parts_of(x, parts, config)
    launch(
        apply_kernel,
        (rows, ceil_div(n, config["BLOCK"])),
        (x, top, sums, out, x.stride(0), rows, n),
        {"LOG": log, "PARTS": parts, "BLOCK": config["BLOCK"]},
        config,
    )
    return out


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
            (ceil_div(rows, together),),
            (grad, out, dx, grad.stride(0), rows, n),
            {"LOG": log, "BLOCK": block, "ROWS": together},
            config,
        )
        return dx
    config = config_for("softmax", "split", "*", target)
    block = config["BLOCK"]
    parts = splits(rows, n, block, target)
    partial = allocate.empty((rows, parts), dtype=torch.float32, device=out.device)
    steps = ceil_div(ceil_div(n, block), parts)
    constants = {"LOG": log, "BLOCK": block}
    launch(products_kernel, (rows, parts), (grad, out, partial, grad.stride(0), n, steps), constants, config)
    launch(
        apply_backward_kernel,
        (rows, ceil_div(n, block)),
        (grad, out, partial, dx, grad.stride(0), n),
        {**constants, "PARTS": parts},
        config,
    )
    return dx
