"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.column_sum import column_sum_kernel
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import as_rows, row_stride, tile
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.rowwise.layer_norm.kernel import backward_kernel, held_kernel, moments_kernel, scale_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

OP = "layer_norm"


@Planner
def run(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> Callable[..., torch.Tensor]:
    """Plan a call; see ``function.layer_norm``."""
    dtype = x.dtype
    if weight is not None:
        dtype = torch.promote_types(dtype, weight.dtype)
        dtype = dtype if bias is None else torch.promote_types(dtype, bias.dtype)
    output = allocate.Output(x.shape, dtype, x.device)
    if x.numel() == 0:
        return lambda *_: output()
    wide = as_rows(x)
    rows, n = wide.shape
    kind = width_class(n)
    if kind == "split":
        return lambda x, weight, bias, eps: _split(x, weight, bias, output(), eps)
    config = config_for(OP, "held", kind, executor.target_for(x.device))
    block, together = tile(n, config)
    constants: dict[str, int] = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    constants |= {"BLOCK": block, "ROWS": together} | _ways(config, x.element_size(), block)
    if config.get("full", 0) and rows % together == 0 and n == block:
        constants |= {"EARLY": True, "FULL": True}
    numbers = (wide.stride(0), rows, n, float(eps))
    plan = LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, numbers)
    seen = row_stride(x) is not None

    def call(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, _eps: float) -> torch.Tensor:
        out = output()
        weight = None if weight is None else weight.contiguous()
        plan((x if seen else as_rows(x), weight, None if bias is None else bias.contiguous(), out))
        return out

    return call


def _ways(config: Config, width: int, block: int) -> dict[str, int]:
    """Return how a row that is needed twice is kept: as 16-bit elements, from a length on, or in the caches."""
    packed = width == 2 and block >= config.get("again_from", 1 << 30)
    return {"AGAIN": packed, "RELOAD": bool(config.get("reload", 0)) and not packed}


def _split(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, out: torch.Tensor, eps: float
) -> torch.Tensor:
    wide = as_rows(x)
    rows, n = wide.shape
    weight = None if weight is None else weight.contiguous()
    bias = None if bias is None else bias.contiguous()
    given = {"HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    config = config_for(OP, "split", "*", executor.target_for(x.device))
    parts = cdiv(n, config["BLOCK"])
    mean, square = (allocate.empty((rows, parts), dtype=torch.float32, device=x.device) for _ in range(2))
    launch(moments_kernel, (rows, parts), (wide, mean, square, wide.stride(0), n), {}, config)
    launch(
        scale_kernel,
        (rows, parts),
        (wide, weight, bias, mean, square, out, wide.stride(0), n, parts, eps),
        {**given, "PARTS": next_power_of_2(parts)},
        config,
    )
    return out


def run_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
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
        None if one is None else allocate.empty((programs, n), dtype=torch.float32, device=x.device)
        for one in (weight, bias)
    )
    launch(
        backward_kernel,
        (programs,),
        (
            grads, wide, None if weight is None else weight.contiguous(), dx, products, sums,
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
