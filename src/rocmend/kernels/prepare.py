"""Calls with everything decided: for callers that keep one for each node of a graph and call it again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_preparers: dict[Callable[..., Any], Callable[..., Any]] = {}


def prepare(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return what computes calls of a public function like this one, without its checks and without looking it up.

    ``call = prepare(kernels.rms_norm, x, weight, 1e-5)`` checks, chooses and plans; ``call(other, weight, 1e-5)`` then
    allocates the result and launches. Nothing is computed by ``prepare`` itself.

    Args:
        function: A public function of ``rocmend.kernels``; one that has nothing to prepare is returned as it is.
        args: Its arguments; of tensors only types, devices, shapes and strides matter.
        kwargs: The like, by name.

    Returns:
        A function of the same arguments. All but tensors' elements and addresses, and numbers that change from step to
        step (``offset`` of ``rope``), must be as they were here: that is not checked. It knows no gradients, and holds
        for the preference, the executor and the records in force now.

    Raises:
        UsageError: Arguments that do not fit.
    """
    preparer = _preparers.get(function)
    return function if preparer is None else preparer(*args, **kwargs)


def preparer(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Register what prepares calls of a public function: it takes their arguments."""

    def register(one: Function) -> Function:
        _preparers[function] = one
        return one

    return register
