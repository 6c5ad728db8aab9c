"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes, semaphores
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.rowwise.arg_reduce.kernel import combine_kernel, pieces_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


@Planner
def run(
    x: torch.Tensor, axis: int, *, largest: bool, index_dtype: torch.dtype, shape: torch.Size | None = None
) -> Callable[..., torch.Tensor]:
    """Plan to find where the best element along an axis is; see ``function.argmax``.

    Args:
        x: Any shape.
        axis: Axis.
        largest: The largest element is best, else the smallest.
        index_dtype: Type of the result.
        shape: Of the result; None for that of x without the axis.
    """
    device = x.device
    outer, n, inner = axes.split(x.shape, axis)
    output = allocate.Output(
        x.shape[:axis] + x.shape[axis + 1 :] if shape is None else shape, dtype=index_dtype, device=x.device
    )
    if outer * inner == 0:
        return lambda *_, **__: output()
    target = executor.target_for(x.device)
    kind = "row" if inner == 1 else "column"
    config = config_for("arg_reduce", "pieces", kind, target)
    lanes = 1 if inner == 1 else min(config["lanes"], next_power_of_2(inner))
    block = max(1, min(config["tile"] // lanes, next_power_of_2(n)))
    outputs = outer * inner
    groups = outer * cdiv(inner, lanes)
    # Enough programs to fill the GPU, each with several tiles.
    wanted = max(1, (config["programs"] + groups - 1) // groups)
    piece = max(cdiv(n, min(wanted, config["most"])), block * config["walk"])
    piece = cdiv(piece, block) * block
    pieces = cdiv(n, piece)
    constants = {"KIND": axes.kind(x.dtype), "MODE": 0 if largest else 2, "BLOCK": block, "INNER": lanes, "PIECES": 1}
    index_type, numbers = axes.raw_type(index_dtype), (n, inner, pieces, piece)
    wide = torch.int64 if x.element_size() == 8 else torch.int32
    types = (axes.raw_type(x.dtype), wide, None, None, index_type)
    first = LaunchPlan(pieces_kernel, (groups * pieces,), constants, config, (*numbers, 0), types)
    dense = x.is_contiguous()
    if pieces == 1:

        def at_once(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
            out = output()
            first((x if dense else x.contiguous(), None, None, None, out))
            return out

        return at_once
    needed = outputs * pieces * (8 + wide.itemsize)
    whole = None
    if config.get("last_pieces", 0) >= pieces and semaphores.fits(groups, needed):
        # The keys stand behind the places in the scratch memory.
        keys_at = outputs * pieces * 8 // wide.itemsize
        constants = {**constants, "PIECES": next_power_of_2(pieces)}
        whole = LaunchPlan(pieces_kernel, (groups * pieces,), constants, config, (*numbers, keys_at), types)
    best, found = (allocate.Output((outer, pieces, inner), dtype, x.device) for dtype in (wide, torch.int64))
    combine = config_for("arg_reduce", "combine", kind, target)
    size = next_power_of_2(pieces)
    each = max(1, min(combine["tile"] // size, next_power_of_2(outputs)))
    last = LaunchPlan(
        combine_kernel,
        (cdiv(outputs, each),),
        {"PIECES": size, "BLOCK": each},
        combine,
        (outputs, inner, pieces),
        (None, None, index_type),
    )

    def in_pieces(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        x = x if dense else x.contiguous()
        out = output()
        if whole is not None and (shared := semaphores.workspace(device, groups, needed)) is not None:
            counters, scratch = shared
            whole((x, scratch, scratch, counters, out))
            return out
        keys, places = best(), found()
        first((x, keys, places, None, None))
        last((keys, places, out))
        return out

    return in_pieces
