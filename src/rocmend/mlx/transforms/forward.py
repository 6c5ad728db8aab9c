"""Forward differentiation: tangents from primals to outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms.graph import CUSTOM, between, primal, results
from rocmend.mlx.transforms.reverse import pull, pulled

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
        return _by_pulling(node, tangents)
    primals = [results(child) for child in node.inputs]
    return op.jvp(node, primals, tangents, results(node))  # type: ignore[union-attr]


def _by_pulling(node: Node, tangents: list[array | None]) -> Any:
    """Record the tangents of a node's outputs.

    A reverse derivative is linear in its cotangent: its own reverse derivative is the forward one.
    """
    specs = node.outputs if node.op.outputs is not None else ((node.shape, node.dtype),)  # type: ignore[union-attr]
    real = [dtype.is_inexact for _, dtype in specs]
    # Any value does for a cotangent: what it is multiplied with is what counts. Zeros are where rules divide by it.
    cotangents = [
        primal(ops.ones(shape, dtype)) if inexact else None for (shape, dtype), inexact in zip(specs, real, strict=True)
    ]
    depends = {id(child) for child, tangent in zip(node.inputs, tangents, strict=True) if tangent is not None}
    single = node.op.outputs is None  # type: ignore[union-attr]
    if not any(real):
        return None if single else [None] * len(specs)
    grads = pulled(node, cotangents[0] if single else cotangents, depends)
    pairs = [(g, t) for g, t in zip(grads, tangents, strict=False) if g is not None and t is not None]
    there = [one for one in cotangents if one is not None]
    found = iter(pull([g._n for g, _ in pairs], [t for _, t in pairs], [one._n for one in there]) if pairs else [])
    parts = [None if one is None else next(found, None) for one in cotangents]
    return parts[0] if single else parts
