"""Reverse differentiation: cotangents from outputs back to primals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import fallback
from rocmend.mlx.transforms.graph import CUSTOM, between, results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["pull", "pulled"]

# which inputs are places, of operations that read or write at places
_PLACES = {
    "Gather": slice(1, None), "TakeAlongAxis": slice(1, None), "Scatter": slice(2, None), "PutAlongAxis": slice(1, 2),
}  # fmt: skip


def pull(outputs: Sequence[Node], cotangents: Sequence[array | None], primals: Sequence[Node]) -> list[array | None]:
    """Return the cotangents of primals, given those of outputs; None where an output does not depend on a primal.

    Args:
        outputs: nodes with one value each.
        cotangents: one for each output, of its shape.
        primals: the nodes that the outputs were computed from.
    """
    order, depends = between(outputs, primals)
    found: dict[int, Any] = {}
    for node, cotangent in zip(outputs, cotangents, strict=True):
        if cotangent is not None and id(node) in depends:
            _add(found, node, cotangent)
    for node in reversed(order):
        cotangent = found.pop(id(node), None)
        if cotangent is None:
            continue
        if node.op is ITEM:
            whole = node.inputs[0]
            slots = found.setdefault(id(whole), [None] * len(whole.outputs))
            slots[node.attrs] = _sum(slots[node.attrs], cotangent, node)
            continue
        for child, part in zip(node.inputs, pulled(node, cotangent, depends), strict=False):
            if part is not None and id(child) in depends:
                _add(found, child, part)
    return [found.get(id(node)) for node in primals]


def pulled(node: Node, cotangent: Any, depends: set[int]) -> Sequence[array | None]:
    """Apply one node's rule.

    Raises:
        ValueError: the operation has no derivative with respect to an input that one was asked for.
    """
    op = node.op
    places = _PLACES.get(op.name)  # type: ignore[union-attr]
    if places is not None and any(id(child) in depends for child in node.inputs[places]):
        raise ValueError(
            f"[{op}] Cannot calculate VJP with respect to indices. Put stop_gradient around them: "
            "mx.stop_gradient(indices)."
        )
    if op is CUSTOM:
        return node.attrs.pull(node, cotangent)  # type: ignore[no-any-return]
    if op.vjp is None:  # type: ignore[union-attr]
        return fallback.vjp(node, cotangent, depends)
    primals = Primals(results(child) for child in node.inputs)
    primals.wanted = [id(child) in depends for child in node.inputs]
    if op.outputs is not None:  # type: ignore[union-attr]
        cotangent = tuple(cotangent)
    return op.vjp(node, primals, results(node), cotangent)  # type: ignore[no-any-return,union-attr]


class Primals(list[Any]):
    """The inputs that a rule gets. It can ask which of them a derivative is wanted of, and save the others.

    Attributes:
        wanted: a truth value for each input.
    """

    __slots__ = ("wanted",)

    wanted: list[bool]


def _sum(a: array | None, b: array, node: Node) -> array:
    if a is None:
        return b if b._n.dtype is node.dtype else ops.astype(b, node.dtype)
    return ops.add(a, b)  # type: ignore[no-any-return]


def _add(found: dict[int, Any], node: Node, cotangent: array) -> None:
    key = id(node)
    before = found.get(key)
    found[key] = cotangent if before is None else ops.add(before, cotangent)
