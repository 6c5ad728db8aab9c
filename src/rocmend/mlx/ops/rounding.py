"""Signs, magnitudes and rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.dtypes import bool_, complex64, float32
from rocmend.mlx.ops.elementwise import derived, flat, primitive, simple, unary
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.node import Node
    from rocmend.mlx.primitive import Primitive

__all__ = ["abs", "ceil", "floor", "negative", "positive", "round", "sign", "trunc"]


def _sign(node: Node, tensor: Any) -> Any:
    if node.dtype.is_unsigned:
        return (tensor != 0).to(tensor.dtype)
    if node.dtype is complex64:
        return torch.where(tensor == 0, tensor, tensor / tensor.abs())
    # NaN has the sign 0
    return (tensor > 0).to(tensor.dtype) - (tensor < 0).to(tensor.dtype) if node.dtype.is_float else torch.sign(tensor)


def _round(node: Node, tensor: Any) -> Any:
    if node.dtype is complex64:
        return torch.complex(torch.round(tensor.real), torch.round(tensor.imag))
    return torch.round(tensor)


ABS = simple("Abs", torch.abs)
SIGN = primitive("Sign", _sign)
NEGATIVE = simple("Negative", torch.neg)
FLOOR = simple("Floor", torch.floor)
CEIL = simple("Ceil", torch.ceil)
TRUNC = simple("Trunc", torch.trunc)
ROUND = primitive("Round", _round)


def abs(a: array, /, *, stream: Any = None) -> array:
    """Return the absolute value, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for complex64.
    """
    x = a._n if type(a) is array else to_array(a)._n
    dtype = x.dtype
    if dtype.is_unsigned or dtype is bool_:
        return wrap(x)
    if dtype is complex64:
        dtype = float32
    return record(ABS, (x,), x.shape, dtype, None, None, stream if stream is None else as_stream(stream))


def sign(a: array, /, *, stream: Any = None) -> array:
    """Return -1, 0 or 1 as an element is negative, zero (or NaN) or positive; ``a / abs(a)`` for complex numbers.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.
    """
    return unary(SIGN, a, stream)


def positive(a: array, /, *, stream: Any = None) -> array:
    """Return ``+a``: the array itself.

    Args:
        a: any array or number.
        stream: for symmetry with other functions.

    Returns:
        An array of the shape and type of ``a``.
    """
    return wrap(to_array(a)._n)


def negative(a: array, /, *, stream: Any = None) -> array:
    """Return ``-a``, element by element; unsigned integers wrap around.

    Args:
        a: any array or number but bool.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is bool.
    """
    if type(a) is not array:
        a = to_array(a)
    if a._n.dtype is bool_:
        raise ValueError("[negative] Not supported for bool, use logical_not instead.")
    return unary(NEGATIVE, a, stream)


def _rounded(op: Primitive, name: str, a: Any, stream: Any) -> array:
    x = to_array(a)
    dtype = x._n.dtype
    if dtype is complex64:
        raise ValueError(f"[{name}] Not supported for complex64.")
    return unary(op, x, stream) if dtype.is_float else wrap(x._n)


def floor(a: array, /, *, stream: Any = None) -> array:
    """Return the largest integer that is not larger, element by element.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is complex.
    """
    return _rounded(FLOOR, "floor", a, stream)


def ceil(a: array, /, *, stream: Any = None) -> array:
    """Return the smallest integer that is not smaller, element by element.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is complex.
    """
    return _rounded(CEIL, "ceil", a, stream)


def trunc(a: array, /, *, stream: Any = None) -> array:
    """Return the integer part, element by element.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is complex.
    """
    return _rounded(TRUNC, "trunc", a, stream)


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
        return unary(ROUND, x, stream) if dtype.is_inexact else wrap(x._n)
    scale = 10.0**decimals
    whole = unary(ROUND, ops.multiply(x, scale, stream), stream)
    return ops.astype(ops.multiply(whole, 1 / scale, stream), dtype, stream=stream)  # type: ignore[no-any-return]


# -- derivatives


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


NEGATIVE.vjp = lambda node, primals, output, g: (negative(g),)
NEGATIVE.jvp = lambda node, primals, tangents, output: negative(tangents[0])
for _op in (SIGN, FLOOR, CEIL, TRUNC, ROUND):
    flat(_op)
_ = derived
