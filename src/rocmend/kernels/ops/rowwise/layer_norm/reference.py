"""The references."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import wide


def _normal(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    values = wide(x)
    centred = values - values.mean(-1, keepdim=True)
    scale = 1 / torch.sqrt(centred.square().mean(-1, keepdim=True) + eps)
    return centred * scale, scale


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis; half types are computed in fp32 and rounded after each step."""
    dtype = x.dtype
    if weight is not None:
        dtype = torch.promote_types(dtype, weight.dtype)
        dtype = dtype if bias is None else torch.promote_types(dtype, bias.dtype)
    out = _normal(x, eps)[0].to(dtype)
    out = out if weight is None else out * weight.to(dtype)
    return out if bias is None else out + bias.to(dtype)


def layer_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of x, the weight and the bias, by the chain rule."""
    normal, scale = _normal(x, eps)
    upper = grad.to(normal.dtype)
    inner = upper if weight is None else upper * weight.to(normal.dtype)
    mean = inner.mean(-1, keepdim=True)
    dx = scale * (inner - mean - normal * (inner * normal).mean(-1, keepdim=True))
    n = x.shape[-1]
    dweight = None if weight is None else (upper * normal).reshape(-1, n).sum(0).to(weight.dtype)
    dbias = None if bias is None else upper.reshape(-1, n).sum(0).to(bias.dtype)
    return dx.to(x.dtype), dweight, dbias


def run_torch(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Call ``torch.nn.functional.layer_norm``: no rounding between its steps."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)
