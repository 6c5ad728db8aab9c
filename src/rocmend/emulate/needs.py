"""What executing machine code needs, and whether it is here; imports nothing heavy."""

from __future__ import annotations

from importlib import util

from rocmend.core.errors import UsageError
from rocmend.core.optional import how_to_install

__all__ = ["lacking"]


def lacking() -> str:
    """Return why no machine code can be executed here; empty where it can."""
    for module in ("rocm", "numpy"):
        if util.find_spec(module) is None:
            return f"nothing here executes AMD machine code on the CPU: {how_to_install(module)}"
    from rocmend.emulate.build import compiler

    try:
        compiler()
    except UsageError as error:
        return f"nothing here executes AMD machine code on the CPU: {error.message}"
    return ""
