"""Where the project's own kernels compute: on a GPU, for the types that they know. Elsewhere torch does.

Called as ``kernel_use.fits(x)``, so that a test can send tensors of the CPU the same way.
"""

from __future__ import annotations

import torch

__all__ = ["fits", "on_gpu"]

_TYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})


def on_gpu(x: torch.Tensor) -> bool:
    """Return whether a tensor is on a GPU."""
    return x.is_cuda


def fits(x: torch.Tensor) -> bool:
    """Return whether a tensor is one for kernels of floating types."""
    return x.is_cuda and x.dtype in _TYPES
