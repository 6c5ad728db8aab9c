"""The reference: torch's own copy, which is the vendor's too."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels import allocate
from rocmend.kernels.common.reference import SIGNED


def copy(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a new contiguous tensor."""
    return copy_into(allocate.empty(x.shape, dtype=dtype or x.dtype, device=x.device), x)


def copy_into(out: Tensor, x: Tensor) -> Tensor:
    """Copy into a tensor; one of the same type by its bits."""
    if x.dtype == out.dtype and x.dtype in SIGNED:
        out.view(SIGNED[x.dtype]).copy_(x.view(SIGNED[x.dtype]))
        return out
    return out.copy_(x)
