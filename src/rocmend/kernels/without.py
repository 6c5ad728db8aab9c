"""Switch kernels off by name: to find the one that is at fault, or to see what one is worth.

``ROCMEND_KERNELS_WITHOUT=digits,lanes`` leaves two out, ``ROCMEND_KERNELS_WITHOUT=nvidia`` all those that only NVIDIA
GPUs run, so that a model computes there with what an AMD GPU takes.
"""

from __future__ import annotations

import os

from rocmend.kernels.target import Target

VARIABLE = "ROCMEND_KERNELS_WITHOUT"
_NAMES = frozenset(name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip())


def nvidia_only(kernel: str, target: Target) -> bool:
    """Return whether a kernel that only NVIDIA GPUs run is taken on a target."""
    return target.vendor == "nvidia" and not _NAMES & {kernel, "nvidia"}
