"""Launch the Triton kernel."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.formats import Format, as_int32
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.matmul.dequantize import Problem, shape_class
from rocmend.kernels.ops.matmul.dequantize.kernel import chunks_kernel
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.tuning import config_for


def run(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    form: Format,
    dtype: torch.dtype,
    global_scale: torch.Tensor | None,
) -> torch.Tensor:
    """Launch the kernel; see ``function.dequantize``."""
    out: torch.Tensor = _values((w, scales, biases, global_scale), form, dtype)
    return out


@cached
def _values(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    global_scale: torch.Tensor | None,
    form: Format,
    dtype: torch.dtype,
) -> torch.Tensor:
    words = as_int32(w).contiguous()
    scales = scales.contiguous()
    biases = None if biases is None else biases.contiguous()
    out = allocate.empty((*w.shape[:-1], form.columns(w.shape[-1])), dtype=dtype, device=w.device)
    chunks = out.numel() // 8
    kind = shape_class(Problem(NAMES[dtype], *form, out.numel()))
    config = config_for("dequantize", "chunks", kind, executor.target_for(w.device))
    constants = {
        "MODE": form.mode, "BITS": form.bits, "GROUP": form.group_size, "HAS_GLOBAL": global_scale is not None,
    }  # fmt: skip
    factor = None if global_scale is None else global_scale.float()
    grid = (cdiv(chunks, config["BLOCK"]),)
    launch(chunks_kernel, grid, (words, scales, biases, factor, out, chunks), constants, config)
    return out
