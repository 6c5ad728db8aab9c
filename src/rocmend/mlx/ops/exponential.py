"""Exponentials, logarithms, roots and their kin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.ops.elementwise import derived, float_unary, real_unary, simple, unary
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = [
    "erf",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "square",
]

EXP = simple("Exp", torch.exp)
EXPM1 = simple("Expm1", torch.expm1)
LOG = simple("Log", torch.log)
LOG2 = simple("Log2", torch.log2)
LOG10 = simple("Log10", torch.log10)
LOG1P = simple("Log1p", torch.log1p)
SQRT = simple("Sqrt", torch.sqrt)
RSQRT = simple("Rsqrt", torch.rsqrt)
SQUARE = simple("Square", lambda x: x * x)
RECIPROCAL = simple("Reciprocal", torch.reciprocal)
SIGMOID = simple("Sigmoid", torch.sigmoid)
ERF = simple("Erf", torch.erf)
ERFINV = simple("ErfInv", torch.erfinv)


def exp(a: array, /, *, stream: Any = None) -> array:
    """Return ``e**a``, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(EXP, a, stream)


def expm1(a: array, /, *, stream: Any = None) -> array:
    """Return ``e**a - 1``, element by element, exact for small ``a`` too.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.

    Raises:
        ValueError: ``a`` is complex.
    """
    return real_unary(EXPM1, "expm1", a, stream)


def log(a: array, /, *, stream: Any = None) -> array:
    """Return the natural logarithm, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(LOG, a, stream)


def log2(a: array, /, *, stream: Any = None) -> array:
    """Return the logarithm to base 2, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(LOG2, a, stream)


def log10(a: array, /, *, stream: Any = None) -> array:
    """Return the logarithm to base 10, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(LOG10, a, stream)


def log1p(a: array, /, *, stream: Any = None) -> array:
    """Return ``log(1 + a)``, element by element, exact for small ``a`` too.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(LOG1P, a, stream)


def sqrt(a: array, /, *, stream: Any = None) -> array:
    """Return the square root, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(SQRT, a, stream)


def rsqrt(a: array, /, *, stream: Any = None) -> array:
    """Return ``1 / sqrt(a)``, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(RSQRT, a, stream)


def square(a: array, /, *, stream: Any = None) -> array:
    """Return ``a * a``, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.
    """
    return unary(SQUARE, a, stream)


def reciprocal(a: array, /, *, stream: Any = None) -> array:
    """Return ``1 / a``, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(RECIPROCAL, a, stream)


def sigmoid(a: array, /, *, stream: Any = None) -> array:
    """Return ``1 / (1 + e**-a)``, element by element.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.

    Raises:
        ValueError: ``a`` is complex.
    """
    return real_unary(SIGMOID, "sigmoid", a, stream)


def erf(a: array, /, *, stream: Any = None) -> array:
    """Return the error function ``2 / sqrt(pi) * integral from 0 to a of e**-(t*t) dt``, element by element.

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.

    Raises:
        ValueError: ``a`` is complex.
    """
    return real_unary(ERF, "erf", a, stream)


def erfinv(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse of :func:`erf`, element by element; NaN beyond [-1, 1].

    Args:
        a: a real array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.

    Raises:
        ValueError: ``a`` is complex.
    """
    return real_unary(ERFINV, "erfinv", a, stream)


# -- derivatives

derived(EXP, lambda node, x, y: y)
derived(EXPM1, lambda node, x, y: ops.exp(x))
derived(LOG, lambda node, x, y: ops.reciprocal(x))
derived(LOG2, lambda node, x, y: ops.reciprocal(ops.multiply(x, math.log(2))))
derived(LOG10, lambda node, x, y: ops.reciprocal(ops.multiply(x, math.log(10))))
derived(LOG1P, lambda node, x, y: ops.reciprocal(ops.add(x, 1)))
derived(SQRT, lambda node, x, y: ops.divide(0.5, y))
derived(RSQRT, lambda node, x, y: ops.multiply(-0.5, ops.divide(y, x)))
derived(RECIPROCAL, lambda node, x, y: ops.negative(ops.square(y)))
derived(SIGMOID, lambda node, x, y: ops.multiply(y, ops.subtract(1, y)))
derived(ERF, lambda node, x, y: ops.multiply(2 / math.sqrt(math.pi), ops.exp(ops.negative(ops.square(x)))))
derived(ERFINV, lambda node, x, y: ops.multiply(math.sqrt(math.pi) / 2, ops.exp(ops.square(y))))


def _square_vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
    x = ops.conjugate(primals[0]) if node.dtype.is_complex else primals[0]
    return (_twice(x, cotangent),)


def _square_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    return _twice(primals[0], tangents[0])


def _twice(x: array, factor: array) -> array:
    """Return 2 * x * factor; 2 * x might overflow where the factor is 0."""
    return ops.multiply(x, ops.multiply(factor, 2))  # type: ignore[no-any-return]


SQUARE.vjp, SQUARE.jvp = _square_vjp, _square_jvp
