"""Launch the Triton kernels."""

from __future__ import annotations

import functools
from typing import Any

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.plans import Plan, carry_out, plan
from rocmend.kernels.common.rows import as_rows, ceil_div, power_of_2
from rocmend.kernels.ops.gated_linear_unit.kernel import backward_kernel, forward_kernel
from rocmend.kernels.tuning import Config, config_for


def _rows(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return tensors of one shape as rows; as one row where all are contiguous."""
    if all(one.is_contiguous() for one in tensors):
        return [one.view(1, -1) for one in tensors]
    return [as_rows(one) for one in tensors]


@functools.lru_cache(maxsize=4096)
def _tiled(kernel: Any, config: Config, rows: int, n: int, kind: str) -> Plan:
    block = min(power_of_2(n), config["tile"])
    together = config["tile"] // block if rows > 1 else 1
    constants = {"KIND": kind, "ROWS": together, "BLOCK": block}
    return plan(kernel, (ceil_div(rows, together) * ceil_div(n, block),), constants, config)


def run(gate: torch.Tensor, up: torch.Tensor, kind: str) -> torch.Tensor:
    """Return activation(gate) · up; ``kind`` is silu, gelu or gelu_tanh."""
    out = allocate.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if gate.numel() == 0:
        return out
    left, right = _rows(gate, up)
    rows, n = left.shape
    config = config_for("gated_linear_unit", "forward", "*", executor.target_for(gate.device))
    args = (left, right, out, left.stride(0), right.stride(0), rows, n)
    carry_out(_tiled(forward_kernel, config, rows, n, kind), args)
    return out


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
    args = (upper, left, right, dgate, dup, upper.stride(0), left.stride(0), right.stride(0), rows, n)
    carry_out(_tiled(backward_kernel, config, rows, n, kind), args)
    return dgate, dup
