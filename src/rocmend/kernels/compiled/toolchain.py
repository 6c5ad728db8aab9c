"""A Triton, and where it is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Toolchain(NamedTuple):
    """A Triton.

    Args:
        version: Its version.
        path: The folder that holds its package; None for the installed Triton.
    """

    version: str
    path: Path | None = None
