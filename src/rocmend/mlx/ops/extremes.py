"""The larger and the smaller of two operands, and what order complex numbers have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.conversion import ordered
from rocmend.mlx.dtypes import complex64
from rocmend.mlx.ops.define import binary
from rocmend.mlx.ops.elementwise import primitive, slopes
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array
    from rocmend.mlx.node import Node

__all__ = ["maximum", "minimum"]


def complex_less(x: Any, y: Any) -> Any:
    """Return where complex numbers come before others: by real part, then by imaginary part."""
    return (x.real < y.real) | ((x.real == y.real) & (x.imag < y.imag))


def _has_nan(x: Any) -> Any:
    return torch.isnan(x.real) | torch.isnan(x.imag)


def _maximum(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype is complex64:
        return torch.where(complex_less(y, x) | _has_nan(x), x, y)
    if dtype.is_unsigned:
        return ordered(torch.maximum(ordered(x, dtype), ordered(y, dtype)), dtype)
    return torch.maximum(x, y)


def _minimum(node: Node, x: Any, y: Any) -> Any:
    dtype = node.dtype
    if dtype is complex64:
        return torch.where(complex_less(x, y) | _has_nan(x), x, y)
    if dtype.is_unsigned:
        return ordered(torch.minimum(ordered(x, dtype), ordered(y, dtype)), dtype)
    return torch.minimum(x, y)


def _where(test: array, node: Node) -> array:
    return ops.astype(test, node.dtype)  # type: ignore[no-any-return]


maximum = binary(
    "maximum",
    primitive("Maximum", _maximum),
    "Return the larger of two operands, element by element; NaN where either is NaN.",
    derivative=slopes(
        lambda node, x, y, out: _where(ops.greater(x, y), node),
        lambda node, x, y, out: _where(ops.less_equal(x, y), node),
    ),
    positional=False,
)
minimum = binary(
    "minimum",
    primitive("Minimum", _minimum),
    "Return the smaller of two operands, element by element; NaN where either is NaN.",
    derivative=slopes(
        lambda node, x, y, out: _where(ops.less(x, y), node),
        lambda node, x, y, out: _where(ops.greater_equal(x, y), node),
    ),
    positional=False,
)
