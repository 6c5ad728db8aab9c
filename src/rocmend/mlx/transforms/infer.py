"""Shapes of operations for other inputs than they were recorded for, where that can be said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.node import Node

__all__ = ["RULES", "unknown"]

# ``rule(node, inputs) -> (shape, attrs, dyn, outputs)`` by the operation's name
RULES: dict[str, Callable[[Node, tuple[Node, ...]], tuple[Any, Any, Any, Any]]] = {}


def unknown(name: str) -> ValueError:
    """Return the error for an operation whose shape cannot be inferred anew."""
    return ValueError(
        f"[Primitive::output_shapes] {name} cannot infer output shapes. Compile the function without shapeless=True."
    )
