"""The references."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import wide


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis; half types are computed in fp32 and rounded before the weight is applied."""
    dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    values = wide(x)
    normal = (values / torch.sqrt(values.square().mean(-1, keepdim=True) + eps)).to(dtype)
    return normal if weight is None else normal * weight.to(dtype)


def rms_norm_backward(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of x and of the weight, by the chain rule."""
    values = wide(x)
    upper = grad.to(values.dtype)
    scale = 1 / torch.sqrt(values.square().mean(-1, keepdim=True) + eps)
    normal = values * scale
    inner = upper if weight is None else upper * weight.to(values.dtype)
    dx = scale * (inner - normal * (inner * normal).mean(-1, keepdim=True))
    if weight is None:
        return dx.to(x.dtype), None
    return dx.to(x.dtype), (upper * normal).reshape(-1, x.shape[-1]).sum(0).to(weight.dtype)


def run_torch(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Call ``torch.nn.functional.rms_norm``: no rounding between normalising and weighting."""
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
