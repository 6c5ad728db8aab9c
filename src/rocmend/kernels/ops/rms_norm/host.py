"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rms_norm import Problem, shape_class
from rocmend.kernels.ops.rms_norm.kernel import held_kernel, walked_kernel
from rocmend.kernels.tuning import config_for


def run(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Launch the kernel; see ``function.rms_norm``."""
    n = x.shape[-1]
    rows = x.reshape(-1, n) if n else x.reshape(0, 1)
    rows = rows if rows.stride(-1) == 1 else rows.contiguous()
    out = allocate.empty_like(x)
    problem = Problem(NAMES[x.dtype], rows.shape[0], n)
    kind = shape_class(problem)
    config = config_for("rms_norm", kind, f"{kind}-{problem.dtype}", executor.target_for(x.device))
    kernel = held_kernel if kind == "held" else walked_kernel
    constants: dict[str, object] = {"HAS_WEIGHT": weight is not None}
    if kind == "held":
        constants["BLOCK"] = triton.next_power_of_2(n)
    launch(kernel, (rows.shape[0],), (rows, weight, out, rows.stride(0), n, eps), constants, config)
    return out
