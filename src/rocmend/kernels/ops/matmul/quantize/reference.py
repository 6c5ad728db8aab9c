"""The reference."""

from __future__ import annotations

import torch

from rocmend.kernels.common import formats
from rocmend.kernels.common.formats import Format, format_of

LARGE = 1 << 28


def quantize(
    w: torch.Tensor,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    global_scale: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Quantize in torch, in fp32 where MLX computes in fp32."""
    return run(w, format_of("quantize", mode, bits, group_size), global_scale)


def run(
    w: torch.Tensor, form: Format, global_scale: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Quantize with a format; large tensors by rows, so that the wide numbers in between fit in memory."""
    if w.numel() < LARGE or w.shape[0] == 1:
        return formats.quantize(w, form, global_scale)
    words, scales, biases = zip(*(formats.quantize(row, form, global_scale) for row in w.split(1)), strict=True)
    signed = torch.cat([part.view(torch.int32) for part in words])
    return signed.view(torch.uint32), torch.cat(scales), torch.cat(biases) if form.affine else None
