"""The reference."""

from __future__ import annotations

import torch

from rocmend.kernels.common import formats
from rocmend.kernels.common.formats import Format, as_int32, format_of

LARGE = 1 << 25  # words


def dequantize(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    global_scale: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Dequantize in torch, in the type of the scales (affine) or of the result."""
    if dtype is None:
        dtype = scales.dtype if mode == "affine" else torch.bfloat16
    return run(w, scales, biases, format_of("dequantize", mode, bits, group_size), dtype, global_scale)


def run(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    form: Format,
    dtype: torch.dtype,
    global_scale: torch.Tensor | None,
) -> torch.Tensor:
    """Dequantize with a format; large tensors by rows, so that the wide numbers in between fit in memory."""
    if w.numel() >= LARGE and w.shape[0] > 1:
        rows = zip(
            as_int32(w).split(1),
            scales.split(1),
            biases.split(1) if biases is not None else [None] * len(w),
            strict=True,
        )
        return torch.cat([formats.dequantize(*row, form, dtype, global_scale) for row in rows])
    return formats.dequantize(w, scales, biases, form, dtype, global_scale)
