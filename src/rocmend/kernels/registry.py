"""The ops: one folder of ``rocmend.kernels.ops.<family>`` each, found by walking it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from rocmend.core.registry import LoadProblem, Registry
from rocmend.kernels.op import Op, resolve

_REGISTRY: Registry[Op] = Registry("op", "rocmend.kernels.ops", listed="rocmend kernels list", grouped=True)


def register(op: Op) -> Op:
    """Register an op under its name and return it.

    Raises:
        UnitError: The name is taken.
    """
    return _REGISTRY.register(op.name)(op)


def ops() -> Iterator[Op]:
    """Iterate over all ops, by name."""
    for _, op in _REGISTRY:
        yield op


def get(name: str) -> Op:
    """Return the op with this name.

    Raises:
        UsageError: No such op.
    """
    return _REGISTRY.get(name)


def problems() -> list[LoadProblem]:
    """Return the op folders that could not be loaded, with the reason."""
    _REGISTRY.load()
    return list(_REGISTRY.problems)


@functools.cache
def exports() -> dict[str, str]:
    """Return public function name to ``module:function``, over all ops."""
    return {name: reference for op in ops() for name, reference in op.functions.items()}


def exported(name: str) -> Callable[..., Any]:
    """Import and return a public function; raises KeyError."""
    function: Callable[..., Any] = resolve(exports()[name])
    return function
