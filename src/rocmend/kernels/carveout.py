"""Divide the memory of a multiprocessor between shared memory and L1, on NVIDIA.

Triton (3.6 to 3.9) has the driver give a kernel with more than 48 KB of shared memory as much of it as there is. On
Hopper this leaves 28 KB for L1, which holds loads in flight: a kernel that streams weights through registers takes up
to twice as long. ``carveout`` in a tuning record is the share of shared memory in percent.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from typing import Any

import torch

_LOG = logging.getLogger(__name__)
_PREFER_NONE = 0
_PREFERRED_CARVEOUT = 9  # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT


def prefer(compiled: Any, percent: int) -> None:
    """Set a kernel's preferred share of shared memory; nothing happens if it is 0.

    It is a hint: the driver takes the next division that fits a program.

    Args:
        compiled: Triton's compiled kernel, loaded.
        percent: Of the largest shared memory that a multiprocessor can have.
    """
    driver = _driver() if percent else None
    if driver is None:
        return
    function = ctypes.c_void_p(compiled.function)
    errors = (
        driver.cuFuncSetCacheConfig(function, _PREFER_NONE),
        driver.cuFuncSetAttribute(function, _PREFERRED_CARVEOUT, percent),
    )
    if any(errors):
        _LOG.warning("the driver did not set a kernel's share of shared memory: errors %d and %d", *errors)


@functools.cache
def _driver() -> ctypes.CDLL | None:
    """Return NVIDIA's driver, or None if there is none."""
    if torch.version.hip is not None or not torch.cuda.is_available():
        return None
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
