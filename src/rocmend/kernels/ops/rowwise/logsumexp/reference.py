"""The references; half types are computed in fp32, as MLX does."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.kernels.common.reference import wide


def logsumexp(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over axes."""
    axes = tuple(range(x.dim())) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return torch.logsumexp(wide(x), axes, keepdim=keepdims).to(x.dtype)


def rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute the kernel's results: ``[rows]`` for ``[rows, n]``."""
    return torch.logsumexp(wide(x), -1).to(dtype)


def logsumexp_backward(grad: Tensor, x: Tensor, lse: Tensor) -> Tensor:
    """Return the gradient of x ``[rows, n]``."""
    return (wide(grad)[:, None] * torch.exp(wide(x) - wide(lse)[:, None])).to(x.dtype)
