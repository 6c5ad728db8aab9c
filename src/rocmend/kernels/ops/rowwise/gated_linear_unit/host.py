"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.rows import as_rows, row_stride
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.rowwise.gated_linear_unit.kernel import backward_kernel, forward_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

_GRID = 65535  # programs along the second axis of a grid, on any vendor's GPUs
_MANY = 1 << 22  # elements from which the class of shapes is large


def _rows(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return tensors of one shape as rows; as one row where all are contiguous."""
    if all(one.is_contiguous() for one in tensors):
        return [one.view(1, -1) for one in tensors]
    return [as_rows(one) for one in tensors]


def _tiled(kernel: Any, config: Config, strides: Sequence[int], rows: int, n: int, kind: str) -> LaunchPlan:
    block = min(next_power_of_2(n), config["tile"])
    together = config["tile"] // block if rows > 1 else 1
    constants = {"KIND": kind, "ROWS": together, "BLOCK": block}
    grid: tuple[int, ...] = (cdiv(n, block), cdiv(rows, together))
    whole = kernel is forward_kernel and grid[1] <= _GRID
    if kernel is forward_kernel:
        constants["GRID"] = whole
    return LaunchPlan(kernel, grid if whole else (grid[0] * grid[1],), constants, config, (*strides, rows, n))


@Planner
def run(gate: torch.Tensor, up: torch.Tensor, kind: str) -> Callable[..., torch.Tensor]:
    """Plan activation(gate) · up; ``kind`` is silu, gelu or gelu_tanh."""
    output = allocate.Output(gate.shape, gate.dtype, gate.device)
    if gate.numel() == 0:
        return lambda *_: output()
    left, right = _rows(gate, up)
    rows, n = left.shape
    size = "large" if rows * n >= _MANY else "small"
    config = config_for("gated_linear_unit", "forward", size, executor.target_for(gate.device))
    plan = _tiled(forward_kernel, config, (left.stride(0), right.stride(0)), rows, n, kind)
    whole = gate.is_contiguous() and up.is_contiguous()
    seen = whole or (row_stride(gate) is not None and row_stride(up) is not None)

    def call(gate: torch.Tensor, up: torch.Tensor, _kind: str) -> torch.Tensor:
        out = output()
        left, right = (gate, up) if seen else _rows(gate, up)
        plan((left, right, out))
        return out

    return call


def run_backward(
    grad: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, kind: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the gradients of gate and up."""
    dgate = allocate.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    dup = allocate.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if gate.numel() == 0:
        return dgate, dup
    upper, left, right = _rows(grad, gate, up)
    rows, n = left.shape
    config = config_for("gated_linear_unit", "backward", "*", executor.target_for(gate.device))
    strides = (upper.stride(0), left.stride(0), right.stride(0))
    _tiled(backward_kernel, config, strides, rows, n, kind)((upper, left, right, dgate, dup))
    return dgate, dup
