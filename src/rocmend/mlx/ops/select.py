"""Choosing between elements: where, clip, nan_to_num."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.conversion import cast_node
from rocmend.mlx.dtypes import bfloat16, bool_, float16, float32
from rocmend.mlx.ops.elementwise import meet, operands, simple
from rocmend.mlx.ops.shape_broadcast import broadcast, unbroadcast
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["clip", "nan_to_num", "where"]

SELECT = simple("Select", torch.where)


def where(condition: Any, x: Any, y: Any, /, *, stream: Any = None) -> array:
    """Return ``x`` where the condition is true (not 0) and ``y`` elsewhere.

    Args:
        condition: array or number.
        x: array or number.
        y: array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which all three meet, in the type in which ``x`` and ``y`` meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    if stream is not None:
        stream = as_stream(stream)
    c = condition._n if type(condition) is array else to_array(condition)._n
    if c.dtype is not bool_:
        c = cast_node(c, bool_, stream)
    first, second, shape, dtype = operands(x, y, stream)
    if c.shape != shape:
        shape = meet(c.shape, shape)
    return record(SELECT, (c, first, second), shape, dtype, None, None, stream)


@SELECT.rule("vjp")
def _where_vjp(
    node: Node, primals: Sequence[array], output: array, cotangent: array
) -> tuple[array | None, array, array]:
    c, x, y = primals
    zero = ops.full((), 0, node.dtype)
    return (
        None,
        unbroadcast(where(c, cotangent, zero), x.shape),
        unbroadcast(where(c, zero, cotangent), y.shape),
    )


@SELECT.rule("jvp")
def _where_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array | None], output: array) -> array:
    zero = ops.full((), 0, node.dtype)
    _, x, y = (zero if tangent is None else tangent for tangent in tangents)
    return broadcast(where(primals[0], x, y), output.shape)


def clip(a: array, /, a_min: Any, a_max: Any, *, stream: Any = None) -> array:
    """Limit elements to a range.

    Args:
        a: any array or number.
        a_min: the smallest value: array, number or None. Where it is larger than ``a_max``, ``a_max`` wins.
        a_max: the largest value: array, number or None.
        stream: where to compute it.

    Returns:
        An array of the shape in which all meet, in the type in which they meet.

    Raises:
        ValueError: both limits are None.
    """
    if a_min is None and a_max is None:
        raise ValueError("[clip] At most one of a_min and a_max may be None.")
    x = to_array(a)
    if a_min is not None:
        x = ops.maximum(x, a_min, stream=stream)
    if a_max is not None:
        x = ops.minimum(x, a_max, stream=stream)
    return x


_LARGEST = {float32: torch.finfo(torch.float32).max, float16: 65504.0, bfloat16: torch.finfo(torch.bfloat16).max}


def nan_to_num(
    a: Any, nan: float = 0, posinf: float | None = None, neginf: float | None = None, *, stream: Any = None
) -> array:
    """Replace NaN and infinities by numbers.

    Args:
        a: any array or number.
        nan: what stands for NaN.
        posinf: what stands for infinity; None: the largest number of the type.
        neginf: what stands for negative infinity; None: the smallest number of the type.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is float64 or complex64.
    """
    x = to_array(a)
    dtype = x._n.dtype
    if not dtype.is_inexact:
        return wrap(x._n)
    if dtype not in _LARGEST:
        raise ValueError(f"[nan_to_num] Does not yet support given type: {dtype.name}.")
    high = _LARGEST[dtype] if posinf is None else posinf
    low = -_LARGEST[dtype] if neginf is None else neginf
    out = where(ops.isnan(x, stream), float(nan), x, stream=stream)
    out = where(ops.isposinf(x, stream), float(high), out, stream=stream)
    return where(ops.isneginf(x, stream), float(low), out, stream=stream)
