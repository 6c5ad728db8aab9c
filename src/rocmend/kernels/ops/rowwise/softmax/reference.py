"""The references; half types are computed in fp32."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rocmend.kernels.ops.rowwise.logsumexp.reference import wide


def _softmax(x: torch.Tensor, axis: int | Sequence[int] | None, *, log: bool) -> torch.Tensor:
    axes = tuple(range(x.dim())) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if x.numel() == 0 or not axes:
        return torch.zeros_like(x) if log else torch.ones_like(x)
    values = wide(x)
    below = values - values.amax(axes, keepdim=True)
    total = below.exp().sum(axes, keepdim=True)
    return (below - total.log() if log else below.exp() / total).to(x.dtype)


def softmax(x: torch.Tensor, axis: int | Sequence[int] | None = None, *, precise: bool = False) -> torch.Tensor:
    """Return exp(x) over its sum along axes."""
    del precise
    return _softmax(x, axis, log=False)


def log_softmax(x: torch.Tensor, axis: int | Sequence[int] | None = None) -> torch.Tensor:
    """Return the logarithm of the softmax."""
    return _softmax(x, axis, log=True)


def rows(x: torch.Tensor, log: bool) -> torch.Tensor:
    """Compute the kernel's results."""
    return _softmax(x, -1, log=log)


def rows_backward(grad: torch.Tensor, out: torch.Tensor, log: bool) -> torch.Tensor:
    """Return the gradient of x."""
    upper, values = wide(grad), wide(out)
    if log:
        return (upper - values.exp() * upper.sum(-1, keepdim=True)).to(out.dtype)
    return (values * (upper - (values * upper).sum(-1, keepdim=True))).to(out.dtype)


def softmax_backward(grad: torch.Tensor, out: torch.Tensor, *, log: bool = False) -> torch.Tensor:
    """Return the gradient of x."""
    return rows_backward(grad, out, log)
