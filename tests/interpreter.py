"""Makes Triton's interpreter faster for the tests, with the same results.

It replaces the functions of ``triton.language`` for each launch, and then again, by the same ones, at each call of a
device function: a third of the time of a kernel that calls many. Here a launch replaces them once. And it makes the
shape of every value anew, of objects that are checked one by one: another third. Here equal shapes are one object.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

KNOWN = "3.9"
"""The Triton whose insides are known; others run as they are."""


def pytest_collection_finish() -> None:
    """Patch the interpreter where a collected test has imported it."""
    interpreter: Any = sys.modules.get("triton.runtime.interpreter")
    patch = getattr(interpreter, "_patch_lang", None)
    if patch is not None and not isinstance(patch, OncePerLaunch):
        interpreter._patch_lang = OncePerLaunch(interpreter, patch)
        interpreter._get_np_dtype = _remembered(interpreter.tl.dtype, interpreter._get_np_dtype)
        if sys.modules["triton"].__version__.startswith(f"{KNOWN}."):
            keep_shapes(interpreter.tl.core)


def _remembered(scalar: type, find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the interpreter's ``_get_np_dtype`` without the table that it builds at each call."""
    known = functools.cache(find)
    return lambda kind: known(kind.scalar) if type(kind.scalar) is scalar else find(kind)


def keep_shapes(core: Any) -> None:
    """Make each shape, with its checks, once: blocks and tensors of that shape share it; nothing changes one."""
    block_init, unwrap = core.block_type.__init__, core._unwrap_if_constexpr
    constexpr, plain = core.constexpr, frozenset({int, bool, float, str, core.tensor, type(None)})
    of_blocks: dict[tuple[int, ...], tuple[Any, int, str]] = {}
    of_tensors: dict[tuple[int, ...], tuple[Any, Any]] = {(): (core.tuple([]), constexpr(1))}

    def fast_unwrap(value: Any) -> Any:
        kind = type(value)
        if kind is constexpr:
            return value.value
        return value if kind in plain else unwrap(value)

    def init_block(self: Any, element_ty: Any, shape: Any) -> None:
        values = shape.values if type(shape) is core.tuple else shape
        sizes = tuple([size.value if type(size) is constexpr else size for size in values])
        known = of_blocks.get(sizes) if all(type(size) is int for size in sizes) else None
        if known is None:
            block_init(self, element_ty, shape)  # which checks it, and raises where it cannot be
            of_blocks[sizes] = self.shape, self.numel, f"<{self.shape}, "
            of_tensors[sizes] = core.tuple([constexpr(size) for size in sizes]), constexpr(self.numel)
        else:
            self.element_ty = element_ty
            self.shape, self.numel, begin = known
            self.name = f"{begin}{element_ty}>"
        self.sizes, self.by_element = sizes, {}

    def with_element_ty(self: Any, scalar_ty: Any) -> Any:
        made = self.by_element.get(id(scalar_ty))
        if made is None:
            made = self.by_element[id(scalar_ty)] = core.block_type(scalar_ty, self.shape)  # which keeps scalar_ty
        return made

    def init_tensor(self: Any, handle: Any, type: Any) -> None:  # noqa: A002  Triton's name
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = of_tensors[type.sizes if type.is_block() else ()]

    core._unwrap_if_constexpr = fast_unwrap
    core.block_type.__init__, core.block_type.with_element_ty = init_block, with_element_ty
    core.tensor.__init__ = init_tensor


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
