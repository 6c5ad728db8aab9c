"""Computing what was asked for: the order, the executor, and what is let go afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.execute import interpreter
from rocmend.mlx.node import Node, current

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["compute", "schedule"]


def schedule(roots: Iterable[Node]) -> list[Node]:
    """Return the nodes that must be computed for ``roots``, each after its inputs."""
    order: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in roots if root.data is None]
    stack.reverse()
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        for child in reversed(node.inputs):
            if child.data is None and id(child) not in seen:
                stack.append((child, False))
    return order


def compute(roots: list[Node]) -> None:
    """Compute the nodes of ``roots`` and all that they need."""
    pending = schedule(roots)
    if pending:
        interpreter.run(pending, keep=current.state.tracing > 0)


def value(node: Node) -> Any:
    """Return a node's tensor, computed if it is not yet."""
    if node.data is None:
        compute([node])
    return node.data
