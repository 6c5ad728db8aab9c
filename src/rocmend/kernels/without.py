"""Switch kernels off by name: to find the one that is at fault, or to see what one is worth.

``ROCMEND_KERNELS_WITHOUT=gather_qmm.digits`` leaves one out, with commas between several, and
``ROCMEND_KERNELS_WITHOUT=nvidia`` all those that only NVIDIA GPUs run: a model then takes what it takes on an AMD GPU.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from rocmend.kernels import caches
from rocmend.kernels.target import Target

VARIABLE = "ROCMEND_KERNELS_WITHOUT"
_names = frozenset(name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip())


def nvidia_only(kernel: str, target: Target) -> bool:
    """Return whether a kernel that only NVIDIA GPUs run is taken on a target."""
    return target.vendor == "nvidia" and not _names & {kernel, "nvidia"}


@contextlib.contextmanager
def switched_off(*names: str) -> Iterator[None]:
    """Leave kernels out for a time, beside those that are left out already."""
    global _names  # noqa: PLW0603  one choice for the process: kernels are chosen deep inside ops
    before, _names = _names, _names.union(names)
    caches.forget()
    try:
        yield
    finally:
        _names = before
        caches.forget()
