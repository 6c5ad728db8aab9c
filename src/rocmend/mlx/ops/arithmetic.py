"""Arithmetic of two operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import pair
from rocmend.mlx.conversion import widened
from rocmend.mlx.dtypes import bool_, complex64, uint64
from rocmend.mlx.ops.define import MEET_FLOAT, MEET_REAL, binary
from rocmend.mlx.ops.elementwise import primitive, simple, slopes
from rocmend.mlx.ops.shape_broadcast import unbroadcast
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = [
    "add",
    "divide",
    "divmod",
    "floor_divide",
    "multiply",
    "remainder",
    "subtract",
]

# -- sums, products, quotients


def _parts(x: Any) -> Any:
    return torch.view_as_real(x.resolve_conj())


def _add(node: Node, x: Any, y: Any) -> Any:
    if node.dtype is complex64:
        # torch multiplies complex operands by 1, which makes NaN of infinities
        return torch.view_as_complex(_parts(x) + _parts(y))
    return x + y


def _subtract(node: Node, x: Any, y: Any) -> Any:
    if node.dtype is complex64:
        return torch.view_as_complex(_parts(x) - _parts(y))
    return x ^ y if node.dtype is bool_ else x - y


def _multiply(node: Node, x: Any, y: Any) -> Any:
    if node.dtype is complex64 and not x.is_cuda:
        # torch's own product is vectorized on a CPU, and rounds otherwise where a row ends than where it begins
        return torch.complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
    return torch.mul(x, y)


ADD = primitive("Add", _add)
SUBTRACT = primitive("Subtract", _subtract)
DIVIDE = simple("Divide", torch.div)


@ADD.rule("vjp")
def _add_vjp(node: Node, primals: Sequence[array], output: array, g: array) -> tuple[array, array]:
    return unbroadcast(g, primals[0].shape), unbroadcast(g, primals[1].shape)


@SUBTRACT.rule("vjp")
def _subtract_vjp(node: Node, primals: Sequence[array], output: array, g: array) -> tuple[array, array]:
    return unbroadcast(g, primals[0].shape), unbroadcast(ops.negative(g), primals[1].shape)


@DIVIDE.rule("vjp")
def _divide_vjp(node: Node, primals: Sequence[array], output: array, g: array) -> tuple[array, array]:
    x, y = primals
    if node.dtype.is_complex:
        output, y = ops.conjugate(output), ops.conjugate(y)
    first = ops.divide(g, y)
    second = ops.negative(ops.multiply(first, output))
    return unbroadcast(first, x.shape), unbroadcast(second, y.shape)


def _minus_one(node: Node, x: array, y: array, out: array) -> array:
    return ops.full((), -1, node.dtype)  # type: ignore[no-any-return]


add = binary("add", ADD, "Return ``a + b``, element by element.", derivative=slopes(None, None))
subtract = binary("subtract", SUBTRACT, "Return ``a - b``, element by element.", derivative=slopes(None, _minus_one))
multiply = binary(
    "multiply",
    primitive("Multiply", _multiply),
    "Return ``a * b``, element by element.",
    derivative=slopes(lambda node, x, y, out: y, lambda node, x, y, out: x),
)
divide = binary(
    "divide",
    DIVIDE,
    "Return ``a / b``, element by element.",
    MEET_FLOAT,
    slopes(lambda node, x, y, out: ops.reciprocal(y), lambda node, x, y, out: ops.negative(ops.divide(out, y))),
)

# -- quotient and remainder of integers


def unsigned_quotient(x: Any, y: Any) -> Any:
    """Return the quotient of uint64 values stored as int64."""
    top = -(2**63)
    small = (torch.div((x >> 1) & ~top, y.clamp(min=1), rounding_mode="trunc")) << 1
    left = x - small * y
    quotient = small + ((left ^ top) >= (y ^ top)).long()
    # a divisor of the upper half goes into x once at most
    return torch.where(y < 0, ((x ^ top) >= (y ^ top)).long(), quotient)


def _floor_divide(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype.is_float:
        return torch.floor(x / y)
    if dtype is bool_:
        return x & y
    if dtype is uint64:
        return unsigned_quotient(x, y)
    return torch.div(widened(x, dtype), widened(y, dtype), rounding_mode="floor").to(dtype.storage)


def _remainder(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype is bool_:
        return x & ~y
    if dtype is uint64:
        return x - unsigned_quotient(x, y) * y
    return torch.remainder(widened(x, dtype), widened(y, dtype)).to(dtype.storage)


def _zero(node: Node, x: array, y: array, out: array) -> array:
    return ops.full((), 0, node.dtype)  # type: ignore[no-any-return]


floor_divide = binary(
    "floor_divide",
    primitive("FloorDivide", _floor_divide),
    "Return the largest integer that is not larger than ``a / b``, element by element.",
    MEET_REAL,
    slopes(_zero, _zero),
)
remainder = binary(
    "remainder",
    primitive("Remainder", _remainder),
    "Return ``a - b * floor(a / b)``, element by element: it has the sign of ``b``.",
    MEET_REAL,
    slopes(None, lambda node, x, y, out: ops.negative(ops.floor_divide(x, y))),
)


def divmod(a: Any, b: Any, stream: Any = None) -> list[array]:
    """Return :func:`floor_divide` and :func:`remainder` of two operands, through which no derivative goes.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A list of quotient and remainder.

    Raises:
        ValueError: an operand is complex, or the shapes cannot be broadcast.
    """
    a, b = pair(a, b)
    if a._n.dtype is complex64 or b._n.dtype is complex64:
        raise ValueError("[divmod] Complex type not supported.")
    return [ops.stop_gradient(part(a, b, stream), stream=stream) for part in (floor_divide, remainder)]
