"""The operations by name: ``ops.add(x, y)`` calls one from any module, also from those that its own module imports.

Modules of the package ``ops`` define the public functions. ``loader`` imports them all and registers what their
``__all__`` names. A function that is not public but is called from below its module registers itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["ops", "register"]


F = TypeVar("F", bound=Callable[..., Any])


class Registry:
    """Functions as attributes: a plain instance, whose attributes Python finds as fast as a module's."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


ops = Registry()


def register(function: F) -> F:
    """Register a function that is not public under its own name.

    Args:
        function: called as ``ops.NAME`` by modules that its own module imports.

    Returns:
        The function.

    Raises:
        ImportError: the name is taken.
    """
    if hasattr(ops, function.__name__):
        raise ImportError(f"mlx operation {function.__name__} is registered twice.")
    setattr(ops, function.__name__, function)
    return function
