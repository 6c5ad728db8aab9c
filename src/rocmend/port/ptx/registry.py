"""The instructions that have a translation: one function for each opcode, found by walking ``table``."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module

from rocmend.port.ptx.context import Context
from rocmend.port.ptx.program import Instruction

__all__ = ["Translate", "instruction", "table"]

Translate = Callable[[Context, Instruction], None]
_known: dict[str, Translate] = {}


def instruction(*roots: str) -> Callable[[Translate], Translate]:
    """Return a decorator that registers a translation of opcodes; forms it lacks raise ``NotUnderstoodError``."""

    def decorate(translate: Translate) -> Translate:
        _known.update(dict.fromkeys(roots, translate))
        return translate

    return decorate


@cache
def table() -> dict[str, Translate]:
    """Return the translations by opcode."""
    package = import_module("rocmend.port.ptx.table")
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return _known
