"""Logic and bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.conversion import widened
from rocmend.mlx.dtypes import uint64
from rocmend.mlx.ops.define import LOGIC, MEET_BITS, MEET_SHIFT, TRUTH, binary, unary
from rocmend.mlx.ops.elementwise import flat, primitive, simple

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

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

logical_not = unary("logical_not", torch.logical_not, "Return whether an element is 0 (False).", TRUTH, flat)
logical_and = binary(
    "logical_and",
    torch.logical_and,
    "Return whether both elements are not 0 (False).",
    LOGIC,
    flat,
    positional=False,
)
logical_or = binary(
    "logical_or",
    torch.logical_or,
    "Return whether an element of the two is not 0 (False).",
    LOGIC,
    flat,
    positional=False,
)
logical_xor = binary(
    "logical_xor",
    torch.logical_xor,
    "Return whether exactly one element of the two is not 0 (False).",
    LOGIC,
    flat,
    positional=False,
)

# -- bits


def _right_shift(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype is uint64:
        # zeros come in from the left: the first step clears the sign
        return torch.where(y == 0, x, ((x >> 1) & 0x7FFFFFFFFFFFFFFF) >> (y - 1).clamp(min=0))
    return (widened(x, dtype) >> y).to(dtype.storage)


bitwise_and = binary(
    "bitwise_and",
    torch.bitwise_and,
    "Return the bits that are set in both operands, element by element.",
    MEET_BITS,
    flat,
)
bitwise_or = binary(
    "bitwise_or",
    torch.bitwise_or,
    "Return the bits that are set in either operand, element by element.",
    MEET_BITS,
    flat,
)
bitwise_xor = binary(
    "bitwise_xor",
    torch.bitwise_xor,
    "Return the bits that are set in exactly one operand, element by element.",
    MEET_BITS,
    flat,
)
left_shift = binary(
    "left_shift",
    torch.bitwise_left_shift,
    "Return the bits of ``a`` moved ``b`` places to the left, element by element.",
    MEET_SHIFT,
    flat,
)
right_shift = binary(
    "right_shift",
    primitive("RightShift", _right_shift),
    "Return the bits of ``a`` moved ``b`` places to the right; the sign is kept, element by element.",
    MEET_SHIFT,
    flat,
)

# the names of the Python array API
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


BITWISE_INVERT = simple("BitwiseInvert", torch.bitwise_not)
flat(BITWISE_INVERT)


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
    x = to_array(a)._n
    if x.dtype.is_inexact:
        raise ValueError("[bitwise_invert] Bitwise inverse only allowed on integer types.")
    return record(BITWISE_INVERT, (x,), x.shape, x.dtype, None, None, stream if stream is None else as_stream(stream))
