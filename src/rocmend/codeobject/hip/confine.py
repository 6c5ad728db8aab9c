"""Whether a stranger's source made the compiler read files that are not its own: what it reads ends up in results."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["is_alien", "reading_directive"]

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_DIRECTIVE = re.compile(r"\.(?:incbin|include|macro|irpc?|altmacro)\b", re.IGNORECASE)
"""Directives of the assembler that take in a file, or that can spell one that does. clang writes none of them."""

_INSTALLED = ("/usr", "/opt", "/lib", "/nix/store")
_VARIABLES = ("ROCM_PATH", "HIP_PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "ROCMEND_HIP_HEADERS")


def is_alien(file: Path, folders: Iterable[Path]) -> bool:
    """Tell whether a file lies neither in these folders nor where software is installed, links followed.

    Args:
        file: What was read.
        folders: The source's own, and those of headers.
    """
    own = [Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix), *map(Path, sys.path), *folders]
    own += [Path(part) for name in _VARIABLES for part in os.environ.get(name, "").split(os.pathsep)]
    places = [one.resolve() for one in own if one.is_absolute() and one != Path("/")]
    real = file.resolve()
    return not any(real.is_relative_to(place) for place in (*places, *map(Path, _INSTALLED)))


def reading_directive(assembly: str) -> str:
    """Return a directive in assembly that reads a file, or could spell one that does; empty where there is none."""
    if not _DIRECTIVE.search(assembly):
        return ""
    found = _DIRECTIVE.search(_STRING.sub('""', assembly))
    return found[0] if found else ""
