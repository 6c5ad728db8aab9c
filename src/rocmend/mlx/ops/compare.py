"""Comparisons, closeness, and tests of floating-point values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, pair, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.conversion import ordered
from rocmend.mlx.dtypes import Dtype, bool_
from rocmend.mlx.ops.elementwise import comparison, flat, primitive
from rocmend.mlx.ops.extremes import complex_less
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

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


EQUAL = _order("Equal", torch.eq, torch.eq)
NOT_EQUAL = _order("NotEqual", torch.ne, torch.ne)
LESS = _order("Less", torch.lt, complex_less)
LESS_EQUAL = _order("LessEqual", torch.le, lambda x, y: complex_less(x, y) | (x == y))
GREATER = _order("Greater", torch.gt, lambda x, y: complex_less(y, x))
GREATER_EQUAL = _order("GreaterEqual", torch.ge, lambda x, y: complex_less(y, x) | (x == y))
NAN_EQUAL = primitive("NanEqual", _nan_equal)
for _op in (EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, NAN_EQUAL):
    flat(_op)


def equal(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a == b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(EQUAL, a, b, stream)


def not_equal(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a != b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(NOT_EQUAL, a, b, stream)


def less(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a < b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(LESS, a, b, stream)


def less_equal(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a <= b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(LESS_EQUAL, a, b, stream)


def greater(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a > b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(GREATER, a, b, stream)


def greater_equal(a: Any, b: Any, stream: Any = None) -> array:
    """Return whether ``a >= b``, element by element.

    Args:
        a: array or number.
        b: array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape in which both meet.

    Raises:
        ValueError: the shapes cannot be broadcast.
    """
    return comparison(GREATER_EQUAL, a, b, stream)


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
    op = NAN_EQUAL if equal_nan and (a._n.dtype.is_inexact or b._n.dtype.is_inexact) else EQUAL
    return ops.all(comparison(op, a, b, stream), stream=stream)  # type: ignore[no-any-return]


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


# -- tests of floating-point values


ISNAN = primitive("IsNaN", lambda node, x: torch.isnan(x))
ISINF = primitive("IsInf", lambda node, x: torch.isinf(x))
ISFINITE = primitive("IsFinite", lambda node, x: torch.isfinite(x))
ISPOSINF = primitive("IsPosInf", lambda node, x: x == float("inf"))
ISNEGINF = primitive("IsNegInf", lambda node, x: x == float("-inf"))
for _op in (ISNAN, ISINF, ISFINITE, ISPOSINF, ISNEGINF):
    flat(_op)


def _tested(op: Primitive, a: Any, stream: Any, *, of_integers: bool = False) -> array:
    x = to_array(a)._n
    if not x.dtype.is_inexact:
        return ops.full(x.shape, of_integers, bool_, stream=stream)  # type: ignore[no-any-return]
    return record(op, (x,), x.shape, bool_, None, None, stream if stream is None else as_stream(stream))


def isnan(a: array, stream: Any = None) -> array:
    """Return whether an element is NaN.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    return _tested(ISNAN, a, stream)


def isinf(a: array, stream: Any = None) -> array:
    """Return whether an element is positive or negative infinity.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    return _tested(ISINF, a, stream)


def isfinite(a: array, stream: Any = None) -> array:
    """Return whether an element is neither infinite nor NaN.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    return _tested(ISFINITE, a, stream, of_integers=True)


def isposinf(a: array, stream: Any = None) -> array:
    """Return whether an element is positive infinity.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    return _tested(ISPOSINF, a, stream)


def isneginf(a: array, stream: Any = None) -> array:
    """Return whether an element is negative infinity.

    Args:
        a: any array or number.
        stream: where to compute it.

    Returns:
        A bool array of the shape of ``a``.
    """
    return _tested(ISNEGINF, a, stream)
