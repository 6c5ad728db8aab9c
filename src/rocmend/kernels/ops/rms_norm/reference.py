"""The reference."""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Normalise over the last axis; half types are computed in fp32 and rounded before the weight is applied."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    normal = (wide / torch.sqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)
    return normal if weight is None else (normal * weight).to(x.dtype)
