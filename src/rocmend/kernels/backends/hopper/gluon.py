"""Where kernels in Gluon are taken: one rule for all of them."""

from __future__ import annotations

import triton

from rocmend.kernels.target import Target
from rocmend.kernels.without import nvidia_only

SUITED = triton.__version__.startswith("3.6.")
"""Whether Triton is of the release that the kernels were measured with: Gluon changes from one to the next."""


def on_target(target: Target, kernel: str) -> bool:
    """Return whether a kernel in Gluon is taken on a target.

    They are of the Triton release that they were measured with, for the multiprocessors they were measured on.
    """
    return SUITED and nvidia_only(kernel, target) and target.generation // 10 == 9  # Hopper
