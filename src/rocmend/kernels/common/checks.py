"""Checks that every op on quantized weights makes of its arguments."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.formats import Format

_WORDS = (torch.uint32, torch.int32)


def check_quantized(
    op: str, words: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, form: Format
) -> None:
    """Check the parts of a quantized tensor against each other.

    Raises:
        UsageError: Shapes or types that do not fit; ``op`` opens the message.
    """
    if words.dtype not in _WORDS:
        raise UsageError(op, f"expected packed words of uint32 or int32, got {words.dtype}.")
    if words.dim() < 2 or words.dim() != scales.dim() or words.shape[:-1] != scales.shape[:-1]:
        raise UsageError(
            op,
            "expected words and scales with the same leading axes, at least one, "
            f"got {tuple(words.shape)} and {tuple(scales.shape)}.",
        )
    if words.shape[-1] * 32 != scales.shape[-1] * form.group_size * form.bits:
        raise UsageError(
            op,
            f"expected {form.group_size} codes of {form.bits} bits for each scale, got words of shape "
            f"{tuple(words.shape)} and scales of shape {tuple(scales.shape)}.",
            next_step="Give the group_size, bits and mode that the weights were quantized with.",
        )
    if form.affine and not scales.dtype.is_floating_point:
        raise UsageError(op, f"expected scales of a floating type with mode affine, got {scales.dtype}.")
    if not form.affine and scales.dtype != torch.uint8:
        raise UsageError(op, f"expected scales of uint8 with mode {form.mode}, got {scales.dtype}.")
    if form.affine != (biases is not None):
        raise UsageError(op, "expected biases with mode affine, and only there.")
    if biases is not None and (biases.shape != scales.shape or biases.dtype != scales.dtype):
        raise UsageError(
            op,
            f"expected biases like the scales, {tuple(scales.shape)} {scales.dtype}, "
            f"got {tuple(biases.shape)} {biases.dtype}.",
        )
