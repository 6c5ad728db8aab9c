"""Switch kernels off by name: to find the one that is at fault, or to see what one is worth.

``ROCMEND_KERNELS_WITHOUT=gather_qmm.moe_gemv`` leaves one out, with commas between several, and
``ROCMEND_KERNELS_WITHOUT=nvidia`` all those that only NVIDIA GPUs run: a model then takes what it takes on an AMD GPU.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator

from rocmend.kernels import caches
from rocmend.kernels.target import Target

VARIABLE = "ROCMEND_KERNELS_WITHOUT"
NVIDIA = (
    "quantized_matmul.lanes", "quantized_matmul.skinny_gemm_persistent", "quantized_matmul.gemm_w4a16_wgmma",
    "quantized_attention.streams", "gather_qmm.moe_gemv", "gather_qmm.moe_gemv_persistent", "gather_qmm.grouped_gemm",
    "gather_qmm.tiles",
)  # fmt: skip
"""Kernels that only NVIDIA GPUs run."""
log = logging.getLogger("rocmend.kernels")


def _known(names: Iterable[str]) -> frozenset[str]:
    """Return the names; those of no kernel are reported, as nothing would be switched off."""
    found = frozenset(name.strip() for name in names if name.strip())
    for name in sorted(found.difference(NVIDIA, ("nvidia",))):
        log.warning("%s: no kernel is called %r; there are nvidia, %s", VARIABLE, name, ", ".join(NVIDIA))
    return found


_names = _known(os.environ.get(VARIABLE, "").split(","))


def nvidia_only(kernel: str, target: Target) -> bool:
    """Return whether a kernel that only NVIDIA GPUs run is taken on a target."""
    return target.vendor == "nvidia" and not _names & {kernel, "nvidia"}


@contextlib.contextmanager
def switched_off(*names: str) -> Iterator[None]:
    """Leave kernels out for a time, beside those that are left out already."""
    global _names  # noqa: PLW0603  one choice for the process: kernels are chosen deep inside ops
    before, _names = _names, _names | _known(names)
    caches.forget()
    try:
        yield
    finally:
        _names = before
        caches.forget()
