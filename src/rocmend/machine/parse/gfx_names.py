"""gfx targets in the names of files and packages."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TARGET = re.compile(r"(?<![A-Za-z])gfx(?:\d{1,2}(?:-\d)?-generic|\d{1,3}[0-9a-f]{2})(?![0-9A-Za-z])")


def targets_in(names: Iterable[str]) -> list[str]:
    """Return the gfx targets that appear in names, in order of ISA version.

    ``TensileLibrary_gfx1100.co`` and ``Kernels.so-000-gfx90a-xnack+.hsaco`` give gfx90a and gfx1100; build families
    (``gfx110X``) and Tensile's placeholder ``gfx000`` are not targets.
    """
    found = {match[0] for name in names for match in _TARGET.finditer(name)}
    found.discard("gfx000")
    return sorted(found, key=target_order)


def target_order(target: str) -> tuple[int, int, str]:
    """Sort key: ISA major, then the rest; generic targets come before the targets of their major version."""
    digits = target.removeprefix("gfx")
    if digits.endswith("-generic"):
        return int(digits.split("-", 1)[0]), -1, digits
    return int(digits[:-2]), int(digits[-2:], 16), digits
