"""Makes Triton's interpreter faster for the tests, with the same results.

It replaces the functions of ``triton.language`` for each launch, and then again, by the same ones, at each call of a
device function: a third of the time of a kernel that calls many. Here a launch replaces them once.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


def pytest_collection_finish() -> None:
    """Patch the interpreter where a collected test has imported it."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    patch = getattr(interpreter, "_patch_lang", None)
    if patch is not None and not isinstance(patch, OncePerLaunch):
        interpreter._patch_lang = OncePerLaunch(interpreter, patch)
        interpreter._get_np_dtype = _remembered(interpreter.tl.dtype, interpreter._get_np_dtype)


def _remembered(scalar: type, find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the interpreter's ``_get_np_dtype`` without the table that it builds at each call."""
    known = functools.cache(find)
    return lambda kind: known(kind.scalar) if type(kind.scalar) is scalar else find(kind)


class OncePerLaunch:
    """Stands in for the interpreter's ``_patch_lang``."""

    def __init__(self, interpreter: Any, patch: Callable[[Any], Any]) -> None:
        self._interpreter = interpreter
        self._patch = patch
        self._done: set[str] = set()  # in the launch that runs
        self._modules = functools.cache(self._read_modules)

    def _read_modules(self, function: Any) -> frozenset[str]:
        language = self._interpreter.tl
        return frozenset(
            one.__name__ for one in function.__globals__.values() if one is language or one is language.core
        )

    def __call__(self, function: Any) -> Any:
        """Replace the functions that a kernel sees, where that is not done yet; return what undoes it."""
        seen = self._modules(function)
        if seen and seen <= self._done:
            return self._interpreter._LangPatchScope()
        launch = not self._done
        scope = self._patch(function)
        self._done |= seen
        if launch:
            restore = scope.restore

            def ended() -> None:
                self._done.clear()
                restore()

            scope.restore = ended
        return scope
