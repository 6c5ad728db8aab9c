"""The references: one exact product after another."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rocmend.kernels.ops.matmul.quantized_matmul.reference import quantized_matmul
from rocmend.kernels.ops.matmul.quantized_projections.function import Weights
from rocmend.kernels.ops.rowwise.gated_linear_unit.reference import swiglu
from rocmend.kernels.ops.rowwise.rms_norm.reference import rms_norm


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


def rms_norm_projections(
    x: torch.Tensor,
    norm_weight: torch.Tensor | None,
    eps: float,
    weights: Sequence[Weights],
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    residual: torch.Tensor | None = None,
    gated: bool = False,
    keep: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Add, normalise, multiply."""
    total = x if residual is None else x + residual
    normed = rms_norm(total, norm_weight, eps)
    if gated:
        products: tuple[torch.Tensor, ...] = (quantized_swiglu(normed, weights[0], weights[1], group_size, bits, mode),)
    else:
        products = quantized_matmul_many(normed, weights, group_size, bits, mode)
    return (*products, *([] if residual is None else [total]), *([normed] if keep else []))
