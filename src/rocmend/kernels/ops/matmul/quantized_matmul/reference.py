"""The reference."""

from __future__ import annotations

import torch

from rocmend.kernels.common.formats import Format, dequantize, format_of


def quantized_matmul(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> torch.Tensor:
    """Multiply with weights that are dequantized exactly: in float64 where x is, else in float32."""
    return product(x, w, scales, biases, transpose, format_of("quantized_matmul", mode, bits, group_size))


def product(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    transpose: bool,
    form: Format,
) -> torch.Tensor:
    """Multiply; see ``quantized_matmul``."""
    out = torch.promote_types(x.dtype, scales.dtype) if form.affine else x.dtype
    wide = torch.float64 if out == torch.float64 else torch.float32
    scales = scales.to(wide) if form.affine else scales
    biases = None if biases is None else biases.to(wide)
    weights = dequantize(w, scales, biases, form, wide)
    weights = weights.transpose(-1, -2) if transpose else weights
    return torch.matmul(x.to(wide), weights).to(out)
