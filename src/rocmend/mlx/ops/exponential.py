"""Exponentials, logarithms, roots and their kin."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from rocmend.mlx.ops.define import FLOAT, REAL, unary
from rocmend.mlx.ops.elementwise import simple, slope
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

exp = unary("exp", torch.exp, "Return ``e**a``, element by element.", FLOAT, slope(lambda node, x, y: y))
expm1 = unary(
    "expm1",
    torch.expm1,
    "Return ``e**a - 1``, element by element, exact for small ``a`` too.",
    REAL,
    slope(lambda node, x, y: ops.exp(x)),
)
log = unary(
    "log",
    torch.log,
    "Return the natural logarithm, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(x)),
)
log2 = unary(
    "log2",
    torch.log2,
    "Return the logarithm to base 2, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(ops.multiply(x, math.log(2)))),
)
log10 = unary(
    "log10",
    torch.log10,
    "Return the logarithm to base 10, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(ops.multiply(x, math.log(10)))),
)
log1p = unary(
    "log1p",
    torch.log1p,
    "Return ``log(1 + a)``, element by element, exact for small ``a`` too.",
    FLOAT,
    slope(lambda node, x, y: ops.reciprocal(ops.add(x, 1))),
)
sqrt = unary(
    "sqrt",
    torch.sqrt,
    "Return the square root, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.divide(0.5, y)),
)
rsqrt = unary(
    "rsqrt",
    torch.rsqrt,
    "Return ``1 / sqrt(a)``, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.multiply(-0.5, ops.divide(y, x))),
)
reciprocal = unary(
    "reciprocal",
    torch.reciprocal,
    "Return ``1 / a``, element by element.",
    FLOAT,
    slope(lambda node, x, y: ops.negative(ops.square(y))),
)
sigmoid = unary(
    "sigmoid",
    torch.sigmoid,
    "Return ``1 / (1 + e**-a)``, element by element.",
    REAL,
    slope(lambda node, x, y: ops.multiply(y, ops.subtract(1, y))),
)
erf = unary(
    "erf",
    torch.erf,
    "Return the error function ``2 / sqrt(pi) * integral from 0 to a of e**-(t*t) dt``, element by element.",
    REAL,
    slope(lambda node, x, y: ops.multiply(2 / math.sqrt(math.pi), ops.exp(ops.negative(ops.square(x))))),
)
erfinv = unary(
    "erfinv",
    simple("ErfInv", torch.erfinv),
    "Return the inverse of :func:`erf`, element by element; NaN beyond [-1, 1].",
    REAL,
    slope(lambda node, x, y: ops.multiply(math.sqrt(math.pi) / 2, ops.exp(ops.square(y)))),
)

SQUARE = simple("Square", lambda x: x * x)


@SQUARE.rule("vjp")
def _square_vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
    x = ops.conjugate(primals[0]) if node.dtype.is_complex else primals[0]
    return (_twice(x, cotangent),)


@SQUARE.rule("jvp")
def _square_jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
    return _twice(primals[0], tangents[0])


def _twice(x: array, factor: array) -> array:
    """Return 2 * x * factor; 2 * x might overflow where the factor is 0."""
    return ops.multiply(x, ops.multiply(factor, 2))  # type: ignore[no-any-return]


square = unary("square", SQUARE, "Return ``a * a``, element by element.")
