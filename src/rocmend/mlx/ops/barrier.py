"""Identities that mean something to the graph: no derivative, an order of computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import to_array
from rocmend.mlx.array import array, record_many
from rocmend.mlx.ops.define import unary
from rocmend.mlx.ops.elementwise import flat
from rocmend.mlx.primitive import STOP_GRADIENT, Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["depends", "stop_gradient"]

stop_gradient = unary(
    "stop_gradient", STOP_GRADIENT, "Return the array itself, through which no derivative goes.", derivative=flat
)


def _depends(node: Node, *tensors: Any) -> tuple[Any, ...]:
    return tensors[: node.attrs]


DEPENDS = Primitive("Depends", _depends, outputs=-1)


@DEPENDS.rule("vjp")
def _depends_vjp(
    node: Node, primals: Sequence[array], output: Any, cotangent: Sequence[array | None]
) -> list[array | None]:
    return [*cotangent, *([None] * (len(primals) - node.attrs))]


@DEPENDS.rule("jvp")
def _depends_jvp(
    node: Node, primals: Sequence[array], tangents: Sequence[array | None], output: Any
) -> tuple[array, ...]:
    count: int = node.attrs
    return tuple(ops.zeros_like(x) if t is None else t for x, t in zip(primals[:count], tangents[:count], strict=True))


@DEPENDS.rule("vmap")
def _depends_vmap(
    node: Node, arrays: Sequence[array], axes: Sequence[int | None]
) -> tuple[list[array], list[int | None]]:
    count: int = node.attrs
    return depends(list(arrays[:count]), list(arrays[count:])), list(axes[:count])


def depends(inputs: Any, dependencies: Any) -> Any:
    """Return the inputs, which are computed after the dependencies.

    Args:
        inputs: an array or a list of arrays.
        dependencies: an array or a list of arrays, computed before.

    Returns:
        An array for an array, a list for a list.
    """
    single = isinstance(inputs, array)
    first = [inputs] if single else list(inputs)
    after = [dependencies] if isinstance(dependencies, array) else list(dependencies)
    nodes = tuple(to_array(x)._n for x in (*first, *after))
    kinds = [(node.shape, node.dtype) for node in nodes[: len(first)]]
    out = record_many(DEPENDS, nodes, kinds, len(first))
    return out[0] if single else list(out)
