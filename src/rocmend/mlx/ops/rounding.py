"""Signs, magnitudes and rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import to_array
from rocmend.mlx.array import array, wrap
from rocmend.mlx.dtypes import bool_, complex64, float32
from rocmend.mlx.ops.define import ANY, SAME, WHOLE, unary
from rocmend.mlx.ops.elementwise import flat, primitive, simple
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node

__all__ = ["abs", "ceil", "floor", "negative", "positive", "round", "sign", "trunc"]

# -- signs


def _sign(node: Node, tensor: Any) -> Any:
    if node.dtype.is_unsigned:
        return (tensor != 0).to(tensor.dtype)
    if node.dtype is complex64:
        return torch.where(tensor == 0, tensor, tensor / tensor.abs())
    # NaN has the sign 0
    return (tensor > 0).to(tensor.dtype) - (tensor < 0).to(tensor.dtype) if node.dtype.is_float else torch.sign(tensor)


sign = unary(
    "sign",
    primitive("Sign", _sign),
    "Return -1, 0 or 1 as an element is negative, zero (or NaN) or positive; ``a / abs(a)`` for complex numbers.",
    derivative=flat,
)

ABS = simple("Abs", torch.abs)


@ABS.rule("vjp")
def _abs_vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
    # for complex numbers too: the direction in which the magnitude grows
    return (ops.multiply(cotangent, sign(primals[0])),)


@ABS.rule("jvp")
def _abs_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    direction = sign(primals[0])
    if primals[0]._n.dtype is complex64:
        return ops.real(ops.multiply(tangents[0], ops.conjugate(direction)))  # type: ignore[no-any-return]
    return ops.multiply(tangents[0], direction)  # type: ignore[no-any-return]


abs = unary(
    "abs",
    ABS,
    "Return the absolute value, element by element.",
    SAME._replace(
        returns="An array of the shape and type of ``a``; float32 for complex64.",
        takes=frozenset(dtype for dtype in ANY if not dtype.is_unsigned and dtype is not bool_),
        other=lambda name, x, stream: wrap(x),
        result=lambda dtype: float32 if dtype is complex64 else dtype,
    ),
)


def positive(a: array, /, *, stream: Any = None) -> array:
    """Return ``+a``: the array itself.

    Args:
        a: any array or number.
        stream: for symmetry with other functions.

    Returns:
        An array of the shape and type of ``a``.
    """
    return wrap(to_array(a)._n)


def _no_bool(name: str, x: Node, stream: Any) -> Node:
    raise ValueError("[negative] Not supported for bool, use logical_not instead.")


NEGATIVE = simple("Negative", torch.neg)
NEGATIVE.vjp = lambda node, primals, output, g: (ops.negative(g),)
NEGATIVE.jvp = lambda node, primals, tangents, output: ops.negative(tangents[0])
negative = unary(
    "negative",
    NEGATIVE,
    "Return ``-a``, element by element; unsigned integers wrap around.",
    SAME._replace(
        takes=ANY - {bool_},
        other=_no_bool,
        operand=("any array or number but bool.",),
        raises=("ValueError: ``a`` is bool.",),
    ),
)

# -- rounding

floor = unary("floor", torch.floor, "Return the largest integer that is not larger, element by element.", WHOLE, flat)
ceil = unary("ceil", torch.ceil, "Return the smallest integer that is not smaller, element by element.", WHOLE, flat)
trunc = unary("trunc", torch.trunc, "Return the integer part, element by element.", WHOLE, flat)


def _round(node: Node, tensor: Any) -> Any:
    if node.dtype is complex64:
        return torch.complex(torch.round(tensor.real), torch.round(tensor.imag))
    return torch.round(tensor)


whole = unary("whole", primitive("Round", _round), "Round to whole numbers, halves to even.", derivative=flat)


def round(a: array, /, decimals: int = 0, stream: Any = None) -> array:
    """Round to the nearest multiple of ``10**-decimals``, halves to even.

    Args:
        a: any array or number.
        decimals: number of decimal places to keep; may be negative.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.
    """
    x = to_array(a)
    dtype = x._n.dtype
    if decimals == 0:
        return whole(x, stream=stream) if dtype.is_inexact else wrap(x._n)
    scale = 10.0**decimals
    scaled = whole(ops.multiply(x, scale, stream), stream=stream)
    return ops.astype(ops.multiply(scaled, 1 / scale, stream), dtype, stream=stream)  # type: ignore[no-any-return]
