"""The reference: softmax, a stable sort, and the end of it."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.ops.rowwise.softmax.reference import softmax


def router(x: Tensor, k: int, *, normalise: bool = False) -> tuple[Tensor, Tensor]:
    """Return values and places."""
    values = softmax(x, -1)
    places = torch.sort(values, dim=-1, stable=True).indices[..., -k:]
    scores = values.gather(-1, places)
    if normalise:
        scores = scores / scores.sum(-1, keepdim=True)
    return scores, places.to(torch.int32)
