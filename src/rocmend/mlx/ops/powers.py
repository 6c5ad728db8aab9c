"""Powers, and sums of exponentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.conversion import widened
from rocmend.mlx.dtypes import bool_, uint64
from rocmend.mlx.ops.define import MEET_FLOAT, binary
from rocmend.mlx.ops.elementwise import primitive, slopes
from rocmend.mlx.ops.extremes import complex_less
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["logaddexp", "pow", "power"]


def _integer_power(dtype: Dtype, x: Any, y: Any) -> Any:
    if dtype is bool_:
        return x | ~y
    if dtype is uint64:
        # x ** 2**63 is 1 for odd x and 0 for even x, modulo 2**64
        low = torch.pow(x, y & 0x7FFFFFFFFFFFFFFF)
        return torch.where((y < 0) & (x & 1 == 0), 0, low)
    x, y = widened(x, dtype), widened(y, dtype)
    if dtype.storage is torch.uint8 or dtype.is_unsigned:
        return torch.pow(x, y).to(dtype.storage)
    return torch.where(y < 0, 0, torch.pow(x, y.clamp(min=0)))


def _power(node: Node, x: Any, y: Any) -> Any:
    return torch.pow(x, y) if node.dtype.is_inexact else _integer_power(node.dtype, x, y)


def _power_log(node: Node, x: array, y: array, out: array) -> array:
    # where the power is 0 it stays 0 as the exponent changes: the logarithm of 0 would make that NaN
    zero = ops.full((), 0, node.dtype)
    return ops.where(ops.equal(out, zero), zero, ops.multiply(ops.log(x), out))  # type: ignore[no-any-return]


power = binary(
    "power",
    primitive("Power", _power),
    "Return ``a ** b``, element by element; integers to negative powers give 0.",
    derivative=slopes(lambda node, x, y, out: ops.multiply(y, ops.power(x, ops.subtract(y, 1))), _power_log),
    positional=False,
)
pow = power


def _logaddexp(node: Node, x: Any, y: Any) -> Any:
    if not node.dtype.is_complex:
        return torch.logaddexp(x, y)
    first = complex_less(y, x)
    high, low = torch.where(first, x, y), torch.where(first, y, x)
    return high + torch.log1p(torch.exp(low - high))


def _share(x: array, other: array) -> array:
    # not exp(x - out): that is NaN where x is infinite, and holds no digits of a small share once out is large
    return ops.sigmoid(ops.subtract(x, other))  # type: ignore[no-any-return]


logaddexp = binary(
    "logaddexp",
    primitive("LogAddExp", _logaddexp),
    "Return ``log(e**a + e**b)``, element by element, without overflow on the way.",
    MEET_FLOAT,
    slopes(lambda node, x, y, out: _share(x, y), lambda node, x, y, out: _share(y, x)),
    positional=False,
)
