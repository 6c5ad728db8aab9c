"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import to_array
from rocmend.mlx.dtypes import float32
from rocmend.mlx.ops.define import FLOAT, FLOATS, MEET_FLOAT, binary, unary
from rocmend.mlx.ops.elementwise import simple, slope, slopes
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.array import array
    from rocmend.mlx.dtypes import Dtype
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


def _far(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Compute sinh or cosh; on a CPU, whole vectors of torch's overflow before the result would."""
    near = function(x)
    if x.is_cuda or x.dtype not in {torch.float32, torch.bfloat16}:
        return near
    root = torch.exp(x.float().abs() * 0.5)
    far = root * (root * 0.5)
    return torch.where(x.abs() > 88, (torch.copysign(far, x) if function is torch.sinh else far).to(x.dtype), near)


def _arccosh_slope(node: Node, x: array, y: array) -> array:
    if node.dtype.is_complex:  # two roots: one of x * x - 1 would be of the other sign in half of the plane
        return ops.multiply(ops.rsqrt(ops.subtract(x, 1)), ops.rsqrt(ops.add(x, 1)))  # type: ignore[no-any-return]
    return ops.rsqrt(ops.subtract(ops.square(x), 1))  # type: ignore[no-any-return]


def _tan_slope(node: Node, x: array, y: array) -> array:
    if node.dtype.is_complex:  # a cosine of a large imaginary part overflows
        return ops.add(1, ops.square(y))  # type: ignore[no-any-return]
    return ops.reciprocal(ops.square(ops.cos(x)))  # type: ignore[no-any-return]  # near a pole y has lost much by rounding


sin = unary("sin", torch.sin, "Return the sine, element by element.", FLOAT, slope(lambda node, x, y: ops.cos(x)))
cos = unary(
    "cos",
    torch.cos,
    "Return the cosine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.negative(ops.sin(x))),
)
tan = unary("tan", torch.tan, "Return the tangent, element by element.", FLOAT, slope(_tan_slope))
arcsin = unary(
    "arcsin",
    simple("ArcSin", torch.asin),
    "Return the inverse sine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.rsqrt(ops.subtract(1, ops.square(x)))),
)
arccos = unary(
    "arccos",
    simple("ArcCos", torch.acos),
    "Return the inverse cosine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.negative(ops.rsqrt(ops.subtract(1, ops.square(x))))),
)
arctan = unary(
    "arctan",
    simple("ArcTan", torch.atan),
    "Return the inverse tangent, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(ops.add(1, ops.square(x)))),
)
sinh = unary(
    "sinh",
    lambda x: _far(torch.sinh, x),
    "Return the hyperbolic sine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.cosh(x)),
)
cosh = unary(
    "cosh",
    lambda x: _far(torch.cosh, x),
    "Return the hyperbolic cosine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.sinh(x)),
)
tanh = unary(
    "tanh",
    torch.tanh,
    "Return the hyperbolic tangent, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.subtract(1, ops.square(y))),
)
arcsinh = unary(
    "arcsinh",
    simple("ArcSinh", torch.asinh),
    "Return the inverse hyperbolic sine, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.rsqrt(ops.add(ops.square(x), 1))),
)
arccosh = unary(
    "arccosh",
    simple("ArcCosh", torch.acosh),
    "Return the inverse hyperbolic cosine, element by element.",
    FLOAT,
    slope(_arccosh_slope),
)
arctanh = unary(
    "arctanh",
    simple("ArcTanh", torch.atanh),
    "Return the inverse hyperbolic tangent, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(ops.subtract(1, ops.square(x)))),
)

# -- the names of the Python array API

acos, acosh, asin, asinh, atan, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctanh

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


def _no_complex(name: str, dtype: Dtype, x: Node, y: Node) -> Dtype:
    if dtype.is_complex:
        raise ValueError(f"[{name}] Not supported for complex64.")
    return float32


def _squares(x: array, y: array) -> array:
    return ops.add(ops.square(x), ops.square(y))  # type: ignore[no-any-return]


arctan2 = binary(
    "arctan2",
    simple("ArcTan2", torch.atan2),
    "Return the angle of the point ``(b, a)`` in its quadrant, element by element.",
    MEET_FLOAT._replace(
        operand=("array or number, the ordinate.", "array or number, the abscissa."),
        takes=FLOATS,
        other=_no_complex,
        returns="An array of the shape in which both meet, floating.",
        raises=("ValueError: an operand is complex, or the shapes cannot be broadcast.",),
    ),
    slopes(
        lambda node, a, b, out: ops.divide(b, _squares(a, b)),
        lambda node, a, b, out: ops.divide(ops.negative(a), _squares(a, b)),
    ),
    positional=False,
)
atan2 = arctan2
