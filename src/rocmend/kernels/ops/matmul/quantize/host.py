"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.formats import Format
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.matmul.quantize import Problem, shape_class
from rocmend.kernels.ops.matmul.quantize.kernel import affine_kernel, float_kernel
from rocmend.kernels.tuning import config_for


def run(
    w: torch.Tensor, form: Format, global_scale: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Launch the kernel; see ``function.quantize``."""
    w = w.contiguous()
    lead, columns = w.shape[:-1], w.shape[-1]
    groups = w.numel() // form.group_size
    words = allocate.empty((*lead, form.words(columns)), dtype=torch.int32, device=w.device)
    of_groups = (*lead, columns // form.group_size)
    scales = allocate.empty(of_groups, dtype=w.dtype if form.affine else torch.uint8, device=w.device)
    kernel = "affine" if form.affine else "float"
    kind = shape_class(Problem(NAMES[w.dtype], *form, w.numel()))
    config = config_for("quantize", kernel, kind, executor.target_for(w.device))
    block = config["elements"] // form.group_size
    grid = (cdiv(groups, block),)
    constants: dict[str, object] = {"BITS": form.bits, "GROUP": form.group_size, "BLOCK": block}
    if form.affine:
        biases = allocate.empty_like(scales)
        launch(affine_kernel, grid, (w, words, scales, biases, groups), constants, config)
        return words.view(torch.uint32), scales, biases
    constants |= {"MODE": form.mode, "HAS_GLOBAL": global_scale is not None}
    factor = None if global_scale is None else global_scale.float()
    launch(float_kernel, grid, (w, words, scales, factor, groups), constants, config)
    return words.view(torch.uint32), scales, None
