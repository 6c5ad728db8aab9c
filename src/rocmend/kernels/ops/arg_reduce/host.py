"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.arg_reduce.kernel import combine_kernel, pieces_kernel
from rocmend.kernels.tuning import config_for


def run(x: torch.Tensor, axis: int, *, largest: bool, index_dtype: torch.dtype) -> torch.Tensor:
    """Return where the best element along an axis is, without the axis; see ``function.argmax``."""
    x = x.contiguous()
    outer, n, inner = axes.split(x.shape, axis)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    out = allocate.empty(shape or (1,), dtype=index_dtype, device=x.device)
    if out.numel() == 0:
        return out.view(shape)
    target = executor.target_for(x.device)
    kind = "row" if inner == 1 else "column"
    config = config_for("arg_reduce", "pieces", kind, target)
    lanes = 1 if inner == 1 else min(config["lanes"], triton.next_power_of_2(inner))
    block = max(1, min(config["tile"] // lanes, triton.next_power_of_2(n)))
    outputs = outer * inner
    groups = outer * triton.cdiv(inner, lanes)
    # Enough programs to fill the GPU, each with several tiles.
    wanted = max(1, (config["programs"] + groups - 1) // groups)
    piece = max(triton.cdiv(n, min(wanted, config["most"])), block * config["walk"])
    piece = triton.cdiv(piece, block) * block
    pieces = triton.cdiv(n, piece)
    wide = torch.int64 if x.element_size() == 8 else torch.int32
    keys = places = None
    if pieces > 1:
        keys = allocate.empty((outer, pieces, inner), dtype=wide, device=x.device)
        places = allocate.empty((outer, pieces, inner), dtype=torch.int64, device=x.device)
    constants = {"KIND": axes.kind(x.dtype), "MODE": 0 if largest else 2, "BLOCK": block, "INNER": lanes}
    index = axes.raw(out)
    args = (axes.raw(x), keys, places, index if pieces == 1 else None, n, inner, pieces, piece)
    launch(pieces_kernel, (groups * pieces,), args, constants, config)
    if pieces > 1:
        combine = config_for("arg_reduce", "combine", kind, target)
        size = triton.next_power_of_2(pieces)
        each = max(1, min(combine["tile"] // size, triton.next_power_of_2(outputs)))
        last = (keys, places, index, outputs, inner, pieces)
        launch(combine_kernel, (triton.cdiv(outputs, each),), last, {"PIECES": size, "BLOCK": each}, combine)
    return out.view(shape)
