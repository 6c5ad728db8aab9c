"""Where kernels in Gluon are taken, and which tensors they take: one rule for all of them."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels.target import Target
from rocmend.kernels.without import nvidia_only

SUITED = triton.__version__.startswith("3.6.")
"""Whether Triton is of the release that the kernels were measured with: Gluon changes from one to the next."""
ALIGNED_BYTES = 16
"""What a lane reads at once, at most."""


def on_target(target: Target, kernel: str) -> bool:
    """Return whether a kernel in Gluon is taken on a target.

    They are of the Triton release that they were measured with, for the multiprocessors they were measured on.
    """
    return SUITED and nvidia_only(kernel, target) and target.generation // 10 == 9  # Hopper


def aligned(*tensors: torch.Tensor | None) -> bool:
    """Return whether all tensors that are there begin where lanes can read as much at once as they mean to."""
    low = 0
    for one in tensors:
        low |= 0 if one is None else one.data_ptr()
    return low % ALIGNED_BYTES == 0
