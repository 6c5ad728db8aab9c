"""Comparisons, closeness, and tests of floating-point values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import pair
from rocmend.mlx.array import array
from rocmend.mlx.conversion import ordered
from rocmend.mlx.ops.define import COMPARE, binary, tested, unary
from rocmend.mlx.ops.elementwise import flat, primitive, simple
from rocmend.mlx.ops.extremes import complex_less
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node
    from rocmend.mlx.primitive import Primitive

__all__ = [
    "allclose",
    "array_equal",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "less",
    "less_equal",
    "not_equal",
]

# -- comparisons; ``attrs`` is the type of the operands


def _order(name: str, plain: Callable[..., Any], of_complex: Callable[..., Any]) -> Primitive:
    def run(node: Node, x: Any, y: Any) -> Any:
        dtype: Dtype = node.attrs
        if dtype.is_unsigned:
            return plain(ordered(x, dtype), ordered(y, dtype))
        return of_complex(x, y) if dtype.is_complex else plain(x, y)

    return primitive(name, run)


def _nan_equal(node: Node, x: Any, y: Any) -> Any:
    return (x == y) | (torch.isnan(x) & torch.isnan(y))


equal = binary(
    "equal",
    _order("Equal", torch.eq, torch.eq),
    "Return whether ``a == b``, element by element.",
    COMPARE,
    flat,
)
not_equal = binary(
    "not_equal",
    _order("NotEqual", torch.ne, torch.ne),
    "Return whether ``a != b``, element by element.",
    COMPARE,
    flat,
)
less = binary(
    "less",
    _order("Less", torch.lt, complex_less),
    "Return whether ``a < b``, element by element.",
    COMPARE,
    flat,
)
less_equal = binary(
    "less_equal",
    _order("LessEqual", torch.le, lambda x, y: complex_less(x, y) | (x == y)),
    "Return whether ``a <= b``, element by element.",
    COMPARE,
    flat,
)
greater = binary(
    "greater",
    _order("Greater", torch.gt, lambda x, y: complex_less(y, x)),
    "Return whether ``a > b``, element by element.",
    COMPARE,
    flat,
)
greater_equal = binary(
    "greater_equal",
    _order("GreaterEqual", torch.ge, lambda x, y: complex_less(y, x) | (x == y)),
    "Return whether ``a >= b``, element by element.",
    COMPARE,
    flat,
)
nan_equal = binary(
    "nan_equal",
    primitive("NanEqual", _nan_equal),
    "Return whether ``a == b`` or both are NaN, element by element.",
    COMPARE,
    flat,
)

# -- tests of floating-point values

isnan = unary(
    "isnan",
    simple("IsNaN", torch.isnan),
    "Return whether an element is NaN.",
    tested(of_integers=False),
    flat,
    positional=True,
)
isinf = unary(
    "isinf",
    simple("IsInf", torch.isinf),
    "Return whether an element is positive or negative infinity.",
    tested(of_integers=False),
    flat,
    positional=True,
)
isfinite = unary(
    "isfinite",
    simple("IsFinite", torch.isfinite),
    "Return whether an element is neither infinite nor NaN.",
    tested(of_integers=True),
    flat,
    positional=True,
)
isposinf = unary(
    "isposinf",
    simple("IsPosInf", lambda x: x == float("inf")),
    "Return whether an element is positive infinity.",
    tested(of_integers=False),
    flat,
    positional=True,
)
isneginf = unary(
    "isneginf",
    simple("IsNegInf", lambda x: x == float("-inf")),
    "Return whether an element is negative infinity.",
    tested(of_integers=False),
    flat,
    positional=True,
)

# -- closeness


def array_equal(a: Any, b: Any, equal_nan: bool = False, stream: Any = None) -> array:
    """Return whether two arrays have the same shape and the same elements.

    Args:
        a: array or number.
        b: array or number.
        equal_nan: take NaN for equal to NaN.
        stream: where to compute it.

    Returns:
        A bool scalar.
    """
    a, b = pair(a, b)
    if a._n.shape != b._n.shape:
        return array(False)
    same = nan_equal if equal_nan and (a._n.dtype.is_inexact or b._n.dtype.is_inexact) else equal
    return ops.all(same(a, b, stream), stream=stream)  # type: ignore[no-any-return]


def isclose(
    a: array,
    b: array,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    *,
    equal_nan: bool = False,
    stream: Any = None,
) -> array:
    """Return whether ``abs(a - b) <= atol + rtol * abs(b)``, element by element.

    Infinities are close to infinities of the same sign only.

    Args:
        a: array or number.
        b: array or number.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: take NaN for close to NaN.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.
    """
    a, b = pair(a, b)
    bound = ops.add(array(atol), ops.multiply(array(rtol), ops.abs(b, stream=stream), stream), stream)
    near: array = less_equal(ops.abs(ops.subtract(a, b, stream), stream=stream), bound, stream)
    if not (a._n.dtype.is_inexact or b._n.dtype.is_inexact):
        return near
    # an integer that is infinite in the other's type is not close to infinity
    one, other = isinf(a, stream), isinf(b, stream)
    same = ops.logical_and(ops.logical_and(one, other, stream=stream), equal(a, b, stream), stream=stream)
    near = ops.where(ops.logical_or(one, other, stream=stream), same, near, stream=stream)
    if equal_nan:
        both = ops.logical_and(isnan(a, stream), isnan(b, stream), stream=stream)
        near = ops.logical_or(near, both, stream=stream)
    return near


def allclose(
    a: array,
    b: array,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    *,
    equal_nan: bool = False,
    stream: Any = None,
) -> array:
    """Return whether all elements are close; see :func:`isclose`.

    Args:
        a: array or number.
        b: array or number.
        rtol: relative tolerance.
        atol: absolute tolerance.
        equal_nan: take NaN for close to NaN.
        stream: where to compute it.

    Returns:
        A bool scalar.
    """
    return ops.all(isclose(a, b, rtol, atol, equal_nan=equal_nan, stream=stream), stream=stream)  # type: ignore[no-any-return]
