"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.rows import as_rows, ceil_div, power_of_2
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.gated_linear_unit.kernel import backward_kernel, forward_kernel
from rocmend.kernels.tuning import config_for


def _rows(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return tensors of one shape as rows; as one row where all are contiguous."""
    if all(one.is_contiguous() for one in tensors):
        return [one.view(1, -1) for one in tensors]
    return [as_rows(one) for one in tensors]


def run(gate: torch.Tensor, up: torch.Tensor, kind: str) -> torch.Tensor:
    """Return activation(gate) · up; ``kind`` is silu, gelu or gelu_tanh."""
    out = allocate.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if gate.numel() == 0:
        return out
    left, right = _rows(gate, up)
    rows, n = left.shape
    config = config_for("gated_linear_unit", "forward", "*", executor.target_for(gate.device))
    block = min(power_of_2(n), config["tile"])
    together = config["tile"] // block if rows > 1 else 1
    launch(
        forward_kernel,
        (ceil_div(rows, together) * ceil_div(n, block),),
        (left, right, out, left.stride(0), right.stride(0), rows, n),
        {"KIND": kind, "ROWS": together, "BLOCK": block},
        config,
    )
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
    block = min(power_of_2(n), config["tile"])
    together = config["tile"] // block if rows > 1 else 1
    launch(
        backward_kernel,
        (ceil_div(rows, together) * ceil_div(n, block),),
        (upper, left, right, dgate, dup, upper.stride(0), left.stride(0), right.stride(0), rows, n),
        {"KIND": kind, "ROWS": together, "BLOCK": block},
        config,
    )
    return dgate, dup
