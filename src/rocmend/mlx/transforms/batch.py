"""Batching: a function of one item, recorded for many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import wrap
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms import fallback
from rocmend.mlx.transforms.graph import CUSTOM, between, results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = ["spread"]


def spread(
    outputs: Sequence[Node], primals: Sequence[Node], arrays: Sequence[array], axes: Sequence[int | None], size: int
) -> list[tuple[array, int | None]]:
    """Record what was recorded for placeholders again, for batches.

    Args:
        outputs: nodes with one value each.
        primals: the placeholders.
        arrays: what stands for them.
        axes: where the batch is in each; None: there is none.
        size: of the batch.

    Returns:
        Each output and the axis of its batch; None where it depends on no batched array.
    """
    order, _ = between(outputs, primals, through_stops=True)
    known: dict[int, Any] = {id(node): (x, axis) for node, x, axis in zip(primals, arrays, axes, strict=True)}
    for node in order:
        if node.op is ITEM:
            values, where = known[id(node.inputs[0])]
            known[id(node)] = values[node.attrs], where[node.attrs]
            continue
        given = [known.get(id(child)) or (results(child), None) for child in node.inputs]
        inputs, where = [x for x, _ in given], [axis for _, axis in given]
        if all(axis is None for axis in where):
            # depends on arrays that are not batched, which stand for placeholders all the same
            done = fallback.again(node, tuple(x._n for x in inputs))
            known[id(node)] = (done, None) if node.op.outputs is None else (done, (None,) * len(done))  # type: ignore[union-attr]
        elif node.op is CUSTOM:
            known[id(node)] = node.attrs.spread(node, inputs, where)
        elif node.op.vmap is not None:  # type: ignore[union-attr]
            known[id(node)] = node.op.vmap(node, inputs, where)  # type: ignore[union-attr]
        else:
            known[id(node)] = fallback.vmap(node, inputs, where, size)
    return [known.get(id(node)) or (wrap(node), None) for node in outputs]
