"""The reference: the front of a stable sort."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.ops.rowwise.sort.reference import gather, indexed, order


def topk(
    x: Tensor, k: int, axis: int = -1, *, largest: bool = True, index_dtype: torch.dtype = torch.int64
) -> tuple[Tensor, Tensor]:
    """Take the first ``k`` along an axis."""
    places = order(x, axis, descending=largest).narrow(axis, 0, k).contiguous()
    return gather(x, axis, places), indexed(places, index_dtype)
