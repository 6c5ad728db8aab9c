"""Patterns of operations for which there is one kernel: one file each, which registers itself.

A pattern is given the steps of a plan and returns fewer. What it puts in place may round less often than one operation
after another, never more.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.execute.patterns.view import View
    from rocmend.mlx.execute.step import Step

    Pattern = Callable[[View], list[Step]]

__all__ = ["PATTERNS", "applied", "pattern"]

PATTERNS: dict[str, Pattern] = {}


def pattern(name: str) -> Callable[[Pattern], Pattern]:
    """Decorate a pattern."""

    def keep(function: Pattern) -> Pattern:
        if name in PATTERNS:
            raise ValueError(f"[pattern] {name} is defined twice.")
        PATTERNS[name] = function
        return function

    return keep


def applied(view: View) -> list[Step]:
    """Apply all patterns, in the order of their names."""
    if not PATTERNS:
        for info in pkgutil.iter_modules(__path__, __name__ + "."):
            importlib.import_module(info.name)
    for name in sorted(PATTERNS):
        view = view.of(PATTERNS[name](view))
    return view.steps
