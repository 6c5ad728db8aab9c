"""The public function."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.checks import check_quantized
from rocmend.kernels.common.formats import as_int32, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.matmul.dequantize import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


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
    """Return the values of a quantized tensor, as ``mlx.core.dequantize`` does.

    Affine: ``scale * code + bias``, product and sum rounded to the type of the scales. Otherwise ``scale * number`` in
    ``dtype``.

    Args:
        w: Words ``[..., n * bits / 32]``, uint32 or int32 with the same bits.
        scales: ``[..., n / group_size]``, float32, float16 or bfloat16 (affine) or uint8.
        biases: Like the scales for affine, else None.
        group_size: 32, 64 (default) or 128 for affine; 32 for mxfp4 and mxfp8; 16 for nvfp4.
        bits: 1, 2, 3, 4 (default), 5, 6 or 8 for affine; 4 or 8 as the mode says.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        global_scale: The float32 that nvfp4 weights were quantized with.
        dtype: Of the result; None for the scales' (affine) or bfloat16.

    Returns:
        ``[..., n]``, contiguous.

    Raises:
        UsageError: Shapes, types or parameters that do not fit.

    Cost: reads words, scales and biases once, writes the values.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.dequantize.html
    """
    out: torch.Tensor = _values((w, scales, biases, global_scale), group_size, bits, mode, dtype)
    return out


@cached
def _values(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    global_scale: torch.Tensor | None,
    group_size: int | None,
    bits: int | None,
    mode: str,
    dtype: torch.dtype | None,
) -> torch.Tensor:
    """Check arguments and compute."""
    form = format_of("dequantize", mode, bits, group_size)
    check_quantized("dequantize", w, scales, biases, form)
    if global_scale is not None and (form.mode != "nvfp4" or global_scale.numel() != 1):
        raise UsageError("dequantize", "expected global_scale to be one number, and only with nvfp4.")
    if dtype is None:
        dtype = scales.dtype if form.affine else torch.bfloat16
    if not dtype.is_floating_point:
        raise UsageError("dequantize", f"expected a floating dtype, got {dtype}.")
    problem = Problem(NAMES[dtype], *form, form.columns(w.numel()))
    out: torch.Tensor = implementation(OP, w.device, problem)(as_int32(w), scales, biases, form, dtype, global_scale)
    return out
