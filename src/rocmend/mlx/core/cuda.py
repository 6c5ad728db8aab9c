"""``mlx.core.cuda``: MLX's CUDA back end is not here."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False, also on an NVIDIA GPU: arrays are computed by torch, and CUDA kernels are not taken."""
    return False
