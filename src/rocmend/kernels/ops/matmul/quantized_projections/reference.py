"""The references: one exact product after another."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rocmend.kernels.ops.matmul.quantized_matmul.reference import quantized_matmul
from rocmend.kernels.ops.matmul.quantized_projections.function import Weights
from rocmend.kernels.ops.rowwise.gated_linear_unit.reference import swiglu


def quantized_matmul_many(
    x: torch.Tensor,
    weights: Sequence[Weights],
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> tuple[torch.Tensor, ...]:
    """Multiply with each."""
    return tuple([quantized_matmul(x, *one, True, group_size, bits, mode) for one in weights])


def quantized_swiglu(
    x: torch.Tensor,
    gate: Weights,
    up: Weights,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> torch.Tensor:
    """Multiply with both, and gate."""
    return swiglu(*quantized_matmul_many(x, (gate, up), group_size, bits, mode))
