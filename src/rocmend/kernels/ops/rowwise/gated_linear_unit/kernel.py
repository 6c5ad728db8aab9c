"""The Triton kernels: one tile each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.rows import as_rows, row_stride
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.rowwise.gated_linear_unit import size_class
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

_GRID = 65535  # programs along the second axis of a grid, on any vendor's GPUs


@triton.jit
def _activated(x, KIND: tl.constexpr):
    """Return the activation of x and its slope."""
    if KIND == "silu":
        half = 1.0 / (1.0 + tl.exp(-x))
        # -inf times 0 would be NaN, in MLX and torch too.
        value = x * half
        slope = half * (1.0 + x * (1.0 - half))
    elif KIND == "gelu":
        half = 0.5 + 0.5 * tl.erf(x * 0.7071067811865476)
        value = x * half
        slope = half + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    else:
        # 0.5 + 0.5 tanh(u) is sigmoid(2u), and what is left to 1 is sigmoid(-2u): neither cancels.
        twice = 1.5957691216057308 * (x + 0.044715 * x * x * x)
        half = 1.0 / (1.0 + tl.exp(-twice))
        left = 1.0 / (1.0 + tl.exp(twice))
        value = x * half
        slope = half + x * half * left * 1.5957691216057308 * (1.0 + 0.134145 * x * x)
    return value, slope


@triton.jit
def forward_kernel(
    gate_ptr, up_ptr, out_ptr, gate_stride, up_stride, rows, n,
    KIND: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, GRID: tl.constexpr,
):  # fmt: skip
    """Write activation(gate) · up. Programs: (tiles of a row, blocks of rows) with GRID, else one after the other."""
    if GRID:
        tile = tl.program_id(0).to(tl.int64)
        block = tl.program_id(1).to(tl.int64)
    else:
        tiles = tl.cdiv(n, BLOCK)
        tile = (tl.program_id(0) % tiles).to(tl.int64)
        block = (tl.program_id(0) // tiles).to(tl.int64)
    row = block * ROWS + tl.arange(0, ROWS)[:, None]
    column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=inside, other=0.0).to(tl.float32)
    value, _ = _activated(gate, KIND)
    tl.store(out_ptr + row * n + column, narrow(value * up, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def backward_kernel(
    grad_ptr, gate_ptr, up_ptr, dgate_ptr, dup_ptr, grad_stride, gate_stride, up_stride, rows, n,
    KIND: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of gate and up."""
    tiles = tl.cdiv(n, BLOCK)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    grad = tl.load(grad_ptr + row * grad_stride + column, mask=inside, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + row * gate_stride + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * up_stride + column, mask=inside, other=0.0).to(tl.float32)
    value, slope = _activated(gate, KIND)
    tl.store(dgate_ptr + row * n + column, narrow(grad * up * slope, dgate_ptr.dtype.element_ty), mask=inside)
    tl.store(dup_ptr + row * n + column, narrow(grad * value, dup_ptr.dtype.element_ty), mask=inside)


def _rows(*tensors: Tensor) -> list[Tensor]:
    """Return tensors of one shape as rows; as one row where all are contiguous."""
    if all(tensor.is_contiguous() for tensor in tensors):
        return [tensor.view(1, -1) for tensor in tensors]
    return [as_rows(tensor) for tensor in tensors]


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
def forward(gate: Tensor, up: Tensor, kind: str) -> Callable[..., Tensor]:
    """Plan activation(gate) · up; ``kind`` is silu, gelu or gelu_tanh."""
    output = allocate.Output(gate.shape, gate.dtype, gate.device)
    if gate.numel() == 0:
        return lambda *_: output()
    left, right = _rows(gate, up)
    rows, n = left.shape
    config = config_for("gated_linear_unit", "forward", size_class(rows * n), executor.target_for(gate.device))
    plan = _tiled(forward_kernel, config, (left.stride(0), right.stride(0)), rows, n, kind)
    whole = gate.is_contiguous() and up.is_contiguous()
    seen = whole or (row_stride(gate) is not None and row_stride(up) is not None)
    return plan.into(output, lambda gate, up, _kind: (gate, up) if seen else _rows(gate, up))


def backward(grad: Tensor, gate: Tensor, up: Tensor, kind: str) -> tuple[Tensor, Tensor]:
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
