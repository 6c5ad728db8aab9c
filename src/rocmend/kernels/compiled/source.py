"""A hash of a kernel's source that is the same in every process.

Triton's own, ``cache_key``, lists constants in the order of the addresses of their modules' dictionaries where it is
older than 3.9: two workers do not agree on it once two modules have a constant of the same name.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import textwrap
from types import ModuleType
from typing import Any


@functools.cache
def source_hash(*functions: Any) -> str:
    """Return a hash of Triton functions, of the functions they call and of the constants that those read.

    Triton's own functions are left out, as its version stands beside the hash, and so are line numbers.

    Args:
        *functions: ``triton.jit`` functions: a kernel, and those that it is given as constants.
    """
    parts: dict[str, str] = {}
    for function in functions:
        _add(function, parts)
    return hashlib.sha256("\n".join(f"{name} {parts[name]}" for name in sorted(parts)).encode()).hexdigest()


def _add(function: Any, parts: dict[str, str]) -> None:
    name = f"{function.fn.__module__}:{function.fn.__qualname__}"
    if name in parts:
        return
    text = textwrap.dedent(function.src)
    parts[name] = f"{text} {getattr(function, 'noinline', False)}"
    space = function.fn.__globals__
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name | ast.Attribute):
            _refer(ast.unparse(node), _resolve(node, space), name, parts)


def _resolve(node: ast.AST, space: dict[str, Any]) -> Any:
    """Resolve a name, or an attribute of a module; None where neither is found."""
    if isinstance(node, ast.Name):
        return space.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _resolve(node.value, space)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return None


def _refer(written: str, value: Any, user: str, parts: dict[str, str]) -> None:
    if value is None or getattr(value, "__module__", "").partition(".")[0] == "triton":
        if type(value).__name__ == "constexpr":
            parts[f"{user} {written}"] = repr(value.value)
    elif hasattr(value, "fn") and hasattr(value, "src"):
        if not value.fn.__module__.startswith("triton."):
            _add(value, parts)
    elif isinstance(value, bool | int | float | str | tuple):
        parts[f"{user} {written}"] = repr(value)
