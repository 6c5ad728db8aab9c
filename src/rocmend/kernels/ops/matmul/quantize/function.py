"""The public function."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.formats import Format, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.matmul.quantize import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation

Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def quantize(
    w: torch.Tensor,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    global_scale: torch.Tensor | None = None,
) -> Quantized:
    """Quantize the last axis in groups, as ``mlx.core.quantize`` does.

    Affine: ``scale = ±(max - min) / (2^bits - 1)`` of a group, signed so that the end of larger magnitude is code 0,
    adjusted so that zero is a code; ``bias`` is that end; ``code = round((w - bias) / scale)``. With one bit the
    codes are the two ends.

    Args:
        w: ``[..., n]`` of at least 2 axes, float32, float16 or bfloat16; n a multiple of the group size.
        group_size: 32, 64 (default) or 128 for affine; 32 for mxfp4 and mxfp8; 16 for nvfp4.
        bits: 1, 2, 3, 4 (default), 5, 6 or 8 for affine; 4 or 8 as the mode says.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        global_scale: One float32 of the whole tensor, for nvfp4.

    Returns:
        Words ``[..., n * bits / 32]`` uint32; scales ``[..., n / group_size]`` of the type of w (affine) or uint8;
        biases like the scales for affine, else None.

    Raises:
        UsageError: Shapes, types or parameters that do not fit.

    Cost: reads w once, writes the words and scales.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html
    """
    out: Quantized = _codes((w, global_scale), group_size, bits, mode)
    return out


@cached
def _codes(
    w: torch.Tensor, global_scale: torch.Tensor | None, group_size: int | None, bits: int | None, mode: str
) -> Quantized:
    """Check arguments and compute."""
    form = format_of("quantize", mode, bits, group_size)
    _check(w, form, global_scale)
    problem = Problem(NAMES[w.dtype], *form, w.numel())
    out: Quantized = implementation(OP, w.device, problem)(w, form, global_scale)
    return out


def _check(w: torch.Tensor, form: Format, global_scale: torch.Tensor | None) -> None:
    if not w.dtype.is_floating_point:
        raise UsageError("quantize", f"expected w of a floating type, got {w.dtype}.")
    if w.dim() < 2:
        raise UsageError("quantize", f"expected w with at least 2 axes, got {w.dim()}.")
    if w.shape[-1] % form.group_size or w.shape[-1] * form.bits % 32:
        raise UsageError(
            "quantize", f"expected a last axis that is a multiple of group_size={form.group_size}, got {w.shape[-1]}."
        )
    if global_scale is not None and (form.mode != "nvfp4" or global_scale.numel() != 1):
        raise UsageError("quantize", "expected global_scale to be one number, and only with nvfp4.")
