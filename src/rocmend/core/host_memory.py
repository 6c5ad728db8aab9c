"""The memory of the machine that this runs on."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes", "total_bytes"]

_MEMINFO = Path("/proc/meminfo")


def total_bytes() -> int:
    """Return the bytes of memory that the machine has."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def available_bytes() -> int:
    """Return the bytes of memory that can be used before others are swapped out; without Linux, the free ones.

    Source: proc_meminfo(5), ``MemAvailable``
    """
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) << 10
    except (OSError, StopIteration, ValueError):
        free = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf(free))
