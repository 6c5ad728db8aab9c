"""Forward differentiation: tangents from primals to outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, wrap
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms import fallback
from rocmend.mlx.transforms.graph import CUSTOM, between, items_of, results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["push"]


def push(outputs: Sequence[Node], primals: Sequence[Node], tangents: Sequence[array]) -> list[array | None]:
    """Return the tangents of outputs, given those of primals; None where an output does not depend on a primal.

    Args:
        outputs: nodes with one value each.
        primals: the nodes that the outputs were computed from.
        tangents: one for each primal, of its shape.
    """
    order, _ = between(outputs, primals)
    known: dict[int, Any] = {id(node): tangent for node, tangent in zip(primals, tangents, strict=True)}
    for node in order:
        if node.op is ITEM:
            parts = known.get(id(node.inputs[0]))
            tangent = None if parts is None else parts[node.attrs]
        else:
            given = [known.get(id(child)) for child in node.inputs]
            if all(one is None for one in given):
                continue
            tangent = pushed(node, given)
        if tangent is not None:
            known[id(node)] = tangent
    return [known.get(id(node)) for node in outputs]


def pushed(node: Node, tangents: list[Any]) -> Any:
    """Apply one node's rule."""
    op = node.op
    if op is CUSTOM:
        return node.attrs.push(node, tangents)
    if op.jvp is None:  # type: ignore[union-attr]
        return fallback.jvp(node, tangents)
    primals = [
        wrap(child) if child.op is None or child.op.outputs is None else items_of(child) for child in node.inputs
    ]
    return op.jvp(node, primals, tangents, results(node))  # type: ignore[union-attr]
