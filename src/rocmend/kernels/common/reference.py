"""What references share."""

from __future__ import annotations

import torch
from torch import Tensor

SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
"""Signed integers of the width of those that torch does little with."""


def wide(x: Tensor) -> Tensor:
    """Return x in fp32, or in its own type where that is wider."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """Return the type that a recurrence of a type is computed in: float64, or fp32 for every other."""
    return torch.float64 if dtype == torch.float64 else torch.float32
