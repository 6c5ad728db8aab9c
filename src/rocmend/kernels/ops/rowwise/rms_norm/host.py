"""Launch the Triton kernels; ``add_rms_norm`` comes through here too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.column_sum import column_sum_kernel
from rocmend.kernels.common.floats import width_class
from rocmend.kernels.common.rows import as_rows, row_stride, splits, tile
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.rowwise.rms_norm.kernel import backward_kernel, held_kernel, scale_kernel, squares_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

OP = "rms_norm"
_FEW = 1 << 31  # what the kernel counts in 32 bits


def held(x: torch.Tensor, residual: torch.Tensor | None, weight: torch.Tensor | None, eps: float) -> LaunchPlan | None:
    """Plan the launch for rows that are held in registers, of ``(x, residual, weight, total, out)``.

    Args:
        x: ``[..., n]``.
        residual: The like, added to x first; or None.
        weight: ``[n]`` or None.
        eps: Added to the mean of squares.

    Returns:
        The plan; None where rows are split over programs, x is empty, or a tensor must be copied first.
    """
    n = x.shape[-1]
    kind = width_class(n)
    if x.numel() == 0 or kind == "split" or (weight is not None and weight.stride(0) != 1):
        return None
    stride, residual_stride = row_stride(x), 0 if residual is None else row_stride(residual)
    if stride is None or residual_stride is None:
        return None
    rows = x.numel() // n
    config = config_for(OP, "held", kind if x.element_size() < 4 else f"{kind}-32", executor.target_for(x.device))
    added = residual is not None
    block = next_power_of_2(n)
    held_elements = config.get("tile", 1)
    together = max(1, (config.get("tile_added", held_elements) if added else held_elements) // block)
    full = bool(config.get("full", 0)) and rows % together == 0 and n == block
    constants = {
        "HAS_RESIDUAL": added,
        "HAS_WEIGHT": weight is not None,
        "BLOCK": block,
        "ROWS": together,
        "FULL": full,
        "DENSE": full and added and stride == n and residual_stride == n and rows * n < _FEW,
    }
    numbers = (stride, residual_stride, rows, n, float(eps))
    return LaunchPlan(held_kernel, (cdiv(rows, together),), constants, config, numbers)


@Planner
def run(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> Callable[..., torch.Tensor]:
    """Plan a call; see ``function.rms_norm``."""
    dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    output = allocate.Output(x.shape, dtype, x.device)
    plan = held(x, None, weight, eps)

    def in_parts(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
        out = output()
        if x.numel():
            forward(as_rows(x), None, weight, None, out, eps)
        return out

    if plan is None:
        return in_parts

    def in_one(x: torch.Tensor, weight: torch.Tensor | None, _eps: float) -> torch.Tensor:
        out = output()
        plan((x, None, weight, None, out))
        return out

    return in_one


def forward(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor | None,
    total: torch.Tensor | None,
    out: torch.Tensor,
    eps: float,
) -> None:
    """Normalise rows, or sums of rows.

    Args:
        x: ``[rows, n]``, adjacent in a row.
        residual: The like, added to x first; or None.
        weight: ``[n]`` or None.
        total: Takes x + residual, contiguous; None without a residual.
        out: Takes the result, contiguous.
        eps: Added to the mean of squares.
    """
    rows, n = x.shape
    weight = None if weight is None else weight.contiguous()
    one = held(x, residual, weight, eps)
    if one is not None:
        one((x, residual, weight, total, out))
        return
    target = executor.target_for(x.device)
    residual_stride = 0 if residual is None else residual.stride(0)
    added = residual is not None
    config = config_for(OP, "split", "*", target)
    block = config["BLOCK"]
    parts = splits(rows, n, block, target)
    partial = allocate.empty((rows, parts), dtype=torch.float32, device=x.device)
    launch(
        squares_kernel,
        (rows, parts),
        (x, residual, total, partial, x.stride(0), residual_stride, n, cdiv(cdiv(n, block), parts)),
        {"HAS_RESIDUAL": added},
        config,
    )
    source = x if total is None else total.view(rows, n)
    launch(
        scale_kernel,
        (rows, cdiv(n, block)),
        (source, weight, partial, out, source.stride(0), n, eps),
        {"HAS_WEIGHT": weight is not None, "PARTS": parts},
        config,
    )


def _stages(config: Config, target: Target, elements: int, read: Sequence[torch.Tensor | None]) -> int:
    """Return the record's stages, fewer where what is copied ahead would not fit in local memory; two gain nothing."""
    ahead = elements * sum(one.element_size() for one in read if one is not None)
    stages = min(int(config["STAGES"]), 1 + target.lds_bytes * 7 // 8 // ahead)
    return stages if stages > 2 else 1


def run_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor | None, eps: float, extra: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor | None]:
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
