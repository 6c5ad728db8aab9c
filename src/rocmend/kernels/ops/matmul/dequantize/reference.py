"""The reference."""

from __future__ import annotations

import torch

from rocmend.kernels.common import formats
from rocmend.kernels.common.formats import Format, as_int32, format_of

# Words that are unpacked at a time: on a CPU what stays in its caches, elsewhere what fits in memory.
CACHED = 1 << 17
LARGE = 1 << 25


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
    most = CACHED if w.device.type == "cpu" else LARGE
    if w.numel() <= most:
        return formats.dequantize(w, scales, biases, form, dtype, global_scale)
    parts = [as_int32(w), scales] if biases is None else [as_int32(w), scales, biases]
    step = max(1, most // w.shape[-1])
    blocks = zip(*(one.reshape(-1, one.shape[-1]).split(step) for one in parts), strict=True)
    out = w.new_empty((w.numel() // w.shape[-1], form.columns(w.shape[-1])), dtype=dtype)
    for place, (words, scale, *bias) in enumerate(blocks):
        made = formats.dequantize(words, scale, bias[0] if bias else None, form, dtype, global_scale)
        out[place * step : place * step + len(words)] = made
    return out.view(*w.shape[:-1], out.shape[-1])
