"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import pair, to_array
from rocmend.mlx.dtypes import float32
from rocmend.mlx.ops.elementwise import derived, derived_pair, float_binary, float_unary, primitive, simple
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "degrees",
    "radians",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

SIN = simple("Sin", torch.sin)
COS = simple("Cos", torch.cos)
TAN = simple("Tan", torch.tan)
ARCSIN = simple("ArcSin", torch.asin)
ARCCOS = simple("ArcCos", torch.acos)
ARCTAN = simple("ArcTan", torch.atan)


def _far(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Compute sinh or cosh; on a CPU, whole vectors of torch's overflow before the result would."""
    near = function(x)
    if x.is_cuda or x.dtype not in {torch.float32, torch.bfloat16}:
        return near
    root = torch.exp(x.float().abs() * 0.5)
    far = root * (root * 0.5)
    return torch.where(x.abs() > 88, (torch.copysign(far, x) if function is torch.sinh else far).to(x.dtype), near)


SINH = primitive("Sinh", lambda node, x: _far(torch.sinh, x))
COSH = primitive("Cosh", lambda node, x: _far(torch.cosh, x))
TANH = simple("Tanh", torch.tanh)
ARCSINH = simple("ArcSinh", torch.asinh)
ARCCOSH = simple("ArcCosh", torch.acosh)
ARCTANH = simple("ArcTanh", torch.atanh)


def sin(a: array, /, *, stream: Any = None) -> array:
    """Return the sine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(SIN, a, stream)


def cos(a: array, /, *, stream: Any = None) -> array:
    """Return the cosine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(COS, a, stream)


def tan(a: array, /, *, stream: Any = None) -> array:
    """Return the tangent, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(TAN, a, stream)


def arcsin(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse sine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCSIN, a, stream)


def arccos(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse cosine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCCOS, a, stream)


def arctan(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse tangent, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCTAN, a, stream)


def sinh(a: array, /, *, stream: Any = None) -> array:
    """Return the hyperbolic sine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(SINH, a, stream)


def cosh(a: array, /, *, stream: Any = None) -> array:
    """Return the hyperbolic cosine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(COSH, a, stream)


def tanh(a: array, /, *, stream: Any = None) -> array:
    """Return the hyperbolic tangent, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(TANH, a, stream)


def arcsinh(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse hyperbolic sine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCSINH, a, stream)


def arccosh(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse hyperbolic cosine, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCCOSH, a, stream)


def arctanh(a: array, /, *, stream: Any = None) -> array:
    """Return the inverse hyperbolic tangent, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return float_unary(ARCTANH, a, stream)


# -- the names of the Python array API

acos, acosh, asin, asinh, atan, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctanh

# -- derivatives


def _arccosh_slope(node: Node, x: array, y: array) -> array:
    if node.dtype.is_complex:  # two roots: one of x * x - 1 would be of the other sign in half of the plane
        return ops.multiply(ops.rsqrt(ops.subtract(x, 1)), ops.rsqrt(ops.add(x, 1)))  # type: ignore[no-any-return]
    return ops.rsqrt(ops.subtract(ops.square(x), 1))  # type: ignore[no-any-return]


def _tan_slope(node: Node, x: array, y: array) -> array:
    if node.dtype.is_complex:  # a cosine of a large imaginary part overflows
        return ops.add(1, ops.square(y))  # type: ignore[no-any-return]
    return ops.reciprocal(ops.square(ops.cos(x)))  # type: ignore[no-any-return]  # near a pole y has lost much by rounding


derived(SIN, lambda node, x, y: ops.cos(x))
derived(COS, lambda node, x, y: ops.negative(ops.sin(x)))
derived(TAN, _tan_slope)
derived(ARCSIN, lambda node, x, y: ops.rsqrt(ops.subtract(1, ops.square(x))))
derived(ARCCOS, lambda node, x, y: ops.negative(ops.rsqrt(ops.subtract(1, ops.square(x)))))
derived(ARCTAN, lambda node, x, y: ops.reciprocal(ops.add(1, ops.square(x))))
derived(SINH, lambda node, x, y: ops.cosh(x))
derived(COSH, lambda node, x, y: ops.sinh(x))
derived(TANH, lambda node, x, y: ops.subtract(1, ops.square(y)))
derived(ARCSINH, lambda node, x, y: ops.rsqrt(ops.add(ops.square(x), 1)))
derived(ARCCOSH, _arccosh_slope)
derived(ARCTANH, lambda node, x, y: ops.reciprocal(ops.subtract(1, ops.square(x))))

# -- angles


def degrees(a: Any, /, *, stream: Any = None) -> array:
    """Convert radians to degrees, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return ops.multiply(_inexact(a, stream), 180 / math.pi, stream)  # type: ignore[no-any-return]


def radians(a: Any, /, *, stream: Any = None) -> array:
    """Convert degrees to radians, element by element.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``; float32 for integers.
    """
    return ops.multiply(_inexact(a, stream), math.pi / 180, stream)  # type: ignore[no-any-return]


def _inexact(a: Any, stream: Any) -> array:
    x = to_array(a)
    return x if x._n.dtype.is_inexact else ops.astype(x, float32, stream=stream)


ARCTAN2 = simple("ArcTan2", torch.atan2)


def arctan2(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Return the angle of the point ``(b, a)`` in its quadrant, element by element.

    Args:
        a: array or number, the ordinate.
        b: array or number, the abscissa.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, floating.

    Raises:
        ValueError: an operand is complex, or the shapes cannot be broadcast.
    """
    a, b = pair(a, b)
    if a._n.dtype.is_complex or b._n.dtype.is_complex:
        raise ValueError("[arctan2] Not supported for complex64.")
    return float_binary(ARCTAN2, a, b, stream)


atan2 = arctan2


def _squares(x: array, y: array) -> array:
    return ops.add(ops.square(x), ops.square(y))  # type: ignore[no-any-return]


derived_pair(
    ARCTAN2,
    lambda node, a, b, out: ops.divide(b, _squares(a, b)),
    lambda node, a, b, out: ops.divide(ops.negative(a), _squares(a, b)),
)
