"""The reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from rocmend.kernels.common import formats
from rocmend.kernels.common.formats import Format, as_int32, format_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# Elements that are quantized at a time: on a CPU what stays in its caches, elsewhere what fits in memory.
CACHED = 1 << 20
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
    """Quantize with a format; large tensors by rows: the wide numbers in between take 40 bytes an element."""
    most = CACHED if w.device.type == "cpu" else LARGE
    if w.numel() <= most:
        return formats.quantize(w, form, global_scale)
    rows = w.reshape(-1, w.shape[-1])
    parts: list[torch.Tensor] = []
    for begin, part in _split(rows, most):
        made = formats.quantize(part, form, global_scale)
        found = [as_int32(made[0]), *(one for one in made[1:] if one is not None)]
        if not parts:
            parts = [one.new_empty((len(rows), one.shape[-1])) for one in found]
        for whole, one in zip(parts, found, strict=True):
            whole[begin : begin + len(part)] = one
    words, *rest = (one.view(*w.shape[:-1], one.shape[-1]) for one in parts)
    return words.view(torch.uint32), rest[0], rest[1] if form.affine else None


def _split(rows: torch.Tensor, most: int) -> Iterator[tuple[int, torch.Tensor]]:
    """Yield blocks of rows that have at most so many elements, and the row that each begins with."""
    step = max(1, most // rows.shape[-1])
    for begin in range(0, len(rows), step):
        yield begin, rows[begin : begin + step]
