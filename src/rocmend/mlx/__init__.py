"""MLX on AMD: the ``mlx.core`` API on torch and Triton.

``rocmend.mlx.activate()`` before ``import mlx.core``, or ``python -m rocmend.mlx -m mlx_lm generate …``, makes
``mlx.core`` this implementation; ``mlx.nn``, ``mlx.optimizers`` and ``mlx_lm`` stay the packages that are installed.
Importing this package imports no torch.
"""

from __future__ import annotations

from rocmend.mlx.activation import activate, is_active

__all__ = ["activate", "is_active"]
