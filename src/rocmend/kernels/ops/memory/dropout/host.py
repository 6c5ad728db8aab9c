"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.memory.dropout.kernel import philox_kernel, threefry_kernel
from rocmend.kernels.ops.memory.dropout.reference import mlx_numbers, philox_numbers
from rocmend.kernels.tuning import config_for


def run(x: torch.Tensor, p: float, state: torch.Tensor, *, generator: str) -> torch.Tensor:
    """Drop elements; see ``function.dropout_mlx`` and ``function.dropout_philox``."""
    x = x.contiguous()
    out = allocate.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    config = config_for("dropout", generator, "*", executor.target_for(x.device))
    if generator == "threefry":
        keep, scale = mlx_numbers(p, x.dtype)
        half = n // 2
        args = (axes.raw(state), x, out, n, half, keep, scale)
        launch(threefry_kernel, (triton.cdiv(n - half, config["BLOCK"]),), args, {}, config)
    else:
        threshold, scale = philox_numbers(p)
        grid = (triton.cdiv(n, 4 * config["BLOCK"]),)
        launch(philox_kernel, grid, (state, x, out, n, threshold, scale), {}, config)
    return out
