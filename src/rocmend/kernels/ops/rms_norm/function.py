"""The public function."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.choose import implementation
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rms_norm import OP, Problem


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Normalise over the last axis: ``x / sqrt(mean(x²) + eps) · weight``.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        weight: ``[n]``, or None.
        eps: Added to the mean of squares.

    Returns:
        ``[..., n]`` of the type of ``x``, contiguous.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads and writes x once; 4 operations an element.
    """
    if x.dim() == 0:
        raise UsageError("rms_norm", "expected x with at least 1 axis, got a scalar.")
    n = x.shape[-1]
    if weight is not None and tuple(weight.shape) != (n,):
        raise UsageError("rms_norm", f"expected weight of shape ({n},), got {tuple(weight.shape)}.")
    problem = Problem(NAMES[x.dtype], x.numel() // n if n else 0, n)
    out: torch.Tensor = implementation(OP, x.device, problem)(x, weight, eps)
    return out
