"""Compiling the C sources of this folder: see ``rocmend.core.extension``."""

from __future__ import annotations

from pathlib import Path

from rocmend.core import extension
from rocmend.core.extension import BuildError

__all__ = ["NAME", "BuildError", "built"]

NAME = "rocmend_mlx_record"


def built() -> Path:
    """Return the library, compiled if it is not in the cache yet.

    Raises:
        BuildError: no compiler, no headers of Python, an interpreter that it is not for, or a compiler that failed.
    """
    return extension.built(NAME, Path(__file__).parent, "module.c", "mlx")
