"""The Triton kernels: one tile each."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


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
