"""The references; half types are computed in fp32."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.kernels.common.reference import wide


def _softmax(x: Tensor, axis: int | Sequence[int] | None, *, log: bool) -> Tensor:
    axes = tuple(range(x.dim())) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if x.numel() == 0 or not axes:
        return torch.zeros_like(x) if log else torch.ones_like(x)
    values = wide(x)
    below = values - values.amax(axes, keepdim=True)
    total = below.exp().sum(axes, keepdim=True)
    return (below - total.log() if log else below.exp() / total).to(x.dtype)


def softmax(x: Tensor, axis: int | Sequence[int] | None = None, *, precise: bool = False) -> Tensor:
    """Return exp(x) over its sum along axes."""
    del precise
    return _softmax(x, axis, log=False)


def log_softmax(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return the logarithm of the softmax."""
    return _softmax(x, axis, log=True)


def rows(x: Tensor, log: bool) -> Tensor:
    """Compute the kernel's results."""
    return _softmax(x, -1, log=log)


def softmax_backward(grad: Tensor, out: Tensor, log: bool = False) -> Tensor:
    """Return the gradient of x."""
    upper, values = wide(grad), wide(out)
    if log:
        return (upper - values.exp() * upper.sum(-1, keepdim=True)).to(out.dtype)
    return (values * (upper - (values * upper).sum(-1, keepdim=True))).to(out.dtype)


def run_torch(x: Tensor, log: bool) -> Tensor:
    """Call ``torch.softmax`` or ``torch.log_softmax`` on rows."""
    return torch.log_softmax(x, -1) if log else torch.softmax(x, -1)
