"""Logic and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, pair, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.conversion import widened
from rocmend.mlx.dtypes import bool_, promote, uint8, uint64
from rocmend.mlx.ops.elementwise import binary, comparison, flat, primitive, simple, unary
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node
    from rocmend.mlx.primitive import Primitive

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "left_shift",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "right_shift",
]

# -- logic: operands are true where they are not 0

LOGICAL_AND = simple("LogicalAnd", torch.logical_and)
LOGICAL_OR = simple("LogicalOr", torch.logical_or)
LOGICAL_XOR = simple("LogicalXor", torch.logical_xor)
LOGICAL_NOT = simple("LogicalNot", torch.logical_not)


def logical_not(a: array, /, *, stream: Any = None) -> array:
    """Return whether an element is 0 (False).

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    x = to_array(a)._n
    return record(LOGICAL_NOT, (x,), x.shape, bool_, None, None, stream if stream is None else as_stream(stream))


def _whatever(value: Any) -> array:
    """Return an operand of which only counts whether it is 0: a number need not fit the other operand's type."""
    return value if type(value) is array else to_array(value)


def logical_and(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Return whether both elements are not 0 (False).

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(LOGICAL_AND, _whatever(a), _whatever(b), stream)


def logical_or(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Return whether an element of the two is not 0 (False).

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(LOGICAL_OR, _whatever(a), _whatever(b), stream)


def logical_xor(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Return whether exactly one element of the two is not 0 (False).

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(LOGICAL_XOR, _whatever(a), _whatever(b), stream)


# -- bits


def _right_shift(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype is uint64:
        # zeros come in from the left: the first step clears the sign
        return torch.where(y == 0, x, ((x >> 1) & 0x7FFFFFFFFFFFFFFF) >> (y - 1).clamp(min=0))
    return (widened(x, dtype) >> y).to(dtype.storage)


BITWISE_AND = simple("BitwiseAnd", torch.bitwise_and)
BITWISE_OR = simple("BitwiseOr", torch.bitwise_or)
BITWISE_XOR = simple("BitwiseXor", torch.bitwise_xor)
BITWISE_INVERT = simple("BitwiseInvert", torch.bitwise_not)
LEFT_SHIFT = simple("LeftShift", torch.bitwise_left_shift)
RIGHT_SHIFT = primitive("RightShift", _right_shift)
for _op in (
    *(LOGICAL_AND, LOGICAL_OR, LOGICAL_XOR, LOGICAL_NOT),
    *(BITWISE_AND, BITWISE_OR, BITWISE_XOR, BITWISE_INVERT, LEFT_SHIFT, RIGHT_SHIFT),
):
    flat(_op)


def _of_bits(op: Primitive, name: str, a: Any, b: Any, stream: Any, *, shift: bool = False) -> array:
    a, b = pair(a, b)
    dtype = promote(a._n.dtype, b._n.dtype)
    if dtype.is_inexact:
        raise RuntimeError(
            f"[{name}] Only allowed on integer or boolean types but got types "
            f"{a._n.dtype.name.removesuffix('_')} and {b._n.dtype.name.removesuffix('_')}."
        )
    if shift and dtype is bool_:
        a = ops.astype(a, uint8, stream=stream)
    return binary(op, a, b, stream)


def bitwise_and(a: Any, b: Any, stream: Any = None) -> array:
    """Return the bits that are set in both operands, element by element.

    Args:
        a: integer or bool array or number.
        b: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, in the type in which they meet.

    Raises:
        RuntimeError: an operand is not integer or bool.
        ValueError: the shapes cannot be broadcast.
    """
    return _of_bits(BITWISE_AND, "bitwise_and", a, b, stream)


def bitwise_or(a: Any, b: Any, stream: Any = None) -> array:
    """Return the bits that are set in either operand, element by element.

    Args:
        a: integer or bool array or number.
        b: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, in the type in which they meet.

    Raises:
        RuntimeError: an operand is not integer or bool.
        ValueError: the shapes cannot be broadcast.
    """
    return _of_bits(BITWISE_OR, "bitwise_or", a, b, stream)


def bitwise_xor(a: Any, b: Any, stream: Any = None) -> array:
    """Return the bits that are set in exactly one operand, element by element.

    Args:
        a: integer or bool array or number.
        b: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, in the type in which they meet.

    Raises:
        RuntimeError: an operand is not integer or bool.
        ValueError: the shapes cannot be broadcast.
    """
    return _of_bits(BITWISE_XOR, "bitwise_xor", a, b, stream)


def left_shift(a: Any, b: Any, stream: Any = None) -> array:
    """Return the bits of ``a`` moved ``b`` places to the left, element by element.

    Args:
        a: integer or bool array or number.
        b: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, in the type in which they meet; uint8 for bool.

    Raises:
        RuntimeError: an operand is not integer or bool.
        ValueError: the shapes cannot be broadcast.
    """
    return _of_bits(LEFT_SHIFT, "left_shift", a, b, stream, shift=True)


def right_shift(a: Any, b: Any, stream: Any = None) -> array:
    """Return the bits of ``a`` moved ``b`` places to the right; the sign is kept, element by element.

    Args:
        a: integer or bool array or number.
        b: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape in which both meet, in the type in which they meet; uint8 for bool.

    Raises:
        RuntimeError: an operand is not integer or bool.
        ValueError: the shapes cannot be broadcast.
    """
    return _of_bits(RIGHT_SHIFT, "right_shift", a, b, stream, shift=True)


# the names of the Python array API
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


def bitwise_invert(a: Any, stream: Any = None) -> array:
    """Return the bits that are not set, element by element.

    Args:
        a: integer or bool array or number.
        stream: where to compute it.

    Returns:
        An array of the shape and type of ``a``.

    Raises:
        ValueError: ``a`` is not integer or bool.
    """
    x = to_array(a)
    if x._n.dtype.is_inexact:
        raise ValueError("[bitwise_invert] Bitwise inverse only allowed on integer types.")
    return unary(BITWISE_INVERT, x, stream)
