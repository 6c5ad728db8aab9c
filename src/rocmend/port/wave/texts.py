"""Device code in strings, which nothing ports: whether it works across the lanes of a warp."""

from __future__ import annotations

import re

__all__ = ["across_lanes"]

_DEVICE = re.compile(rb"\b__(?:global|device)__\b")
_ACROSS = re.compile(
    rb"\b(__(?:shfl|ballot|any|all|match_any|match_all|reduce|activemask|syncwarp)\w*)\s*\("
    rb"|\b(warpSize)\b|\b(asm)\s*(?:volatile\s*)?\(|\b(cooperative_groups)\b|\b(cub)::"
)


def across_lanes(text: bytes) -> str:
    """Return the first word of device code in a text that works across lanes; empty where there is none.

    Args:
        text: Of a string, or of neighbouring strings, as they are written.
    """
    found = _ACROSS.search(text) if _DEVICE.search(text) else None
    return next(group for group in found.groups() if group).decode() if found else ""
