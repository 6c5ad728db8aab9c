"""The reference; half types are computed in fp32 and rounded once."""

from __future__ import annotations

from torch import Tensor

from rocmend.kernels.common.reference import wide


def weighted_sum(x: Tensor, weights: Tensor) -> Tensor:
    """Return the weighted sums."""
    return (wide(x) * wide(weights)[..., None]).sum(-2).to(x.dtype)
