"""Torch's own function."""

from __future__ import annotations

import torch


def run(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> torch.Tensor:
    """Call ``torch.nn.functional.layer_norm``: no rounding between its steps."""
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)
