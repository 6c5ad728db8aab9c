"""What has gathered up to each element of an axis."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.shape import out_of_bounds, reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.slices import cut
from rocmend.mlx.ops.sorting import ordered
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "diff", "logcumsumexp"]


def _extreme(x: torch.Tensor, axis: int, *, largest: bool) -> torch.Tensor:
    """Return the extreme so far; complex numbers by their real, then their imaginary part."""
    import torch

    if not x.is_complex():
        if x.dtype == torch.bool:
            wide = x.to(torch.uint8)
            return (wide.cummax(axis) if largest else wide.cummin(axis)).values != 0
        return (x.cummax(axis) if largest else x.cummin(axis)).values
    held, *rest = x.unbind(axis)
    found = [held]
    for new in rest:
        a, b = (new, held) if largest else (held, new)
        over = (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag))
        held = torch.where((over | new.isnan()) & ~held.isnan(), new, held)
        found.append(held)
    return torch.stack(found, axis)


def _identity(op: str, dtype: torch.dtype) -> Any:
    import torch

    if op in ("sum", "prod"):
        return int(op == "prod")
    if dtype == torch.bool:
        return op == "min"
    edge = inf if op == "min" else -inf
    if dtype.is_complex:
        return edge if op == "logsumexp" else complex(edge, edge)
    if dtype.is_floating_point:
        return edge
    info = torch.iinfo(dtype)
    return info.max if op == "min" else info.min


def _scanned(op: str, x: torch.Tensor, axis: int) -> torch.Tensor:
    import torch

    if op == "sum":
        return x.cumsum(axis, dtype=x.dtype)
    if op == "prod":
        return x.cumprod(axis, dtype=x.dtype)
    if op == "logsumexp":
        return torch.logcumsumexp(x, axis)
    return _extreme(x, axis, largest=op == "max")


_KERNELS = {"sum": "cumsum", "prod": "cumprod", "max": "cummax", "min": "cummin", "logsumexp": "logcumsumexp"}


def _scan(op: str) -> Callable[[Node, Any], Any]:
    def run(node: Node, x: torch.Tensor) -> torch.Tensor:
        import torch

        axis, reverse, inclusive, unsigned = node.attrs
        turned = unsigned and op in ("max", "min")
        x = ordered(x, turned)
        if x.numel() == 0:
            return x.clone()
        if x.is_cuda and not x.is_complex() and not x.requires_grad:
            from rocmend.kernels.ops.recurrence.scan import function

            kernel = getattr(function, _KERNELS[op])
            return ordered(kernel(x, axis, reverse=reverse, inclusive=inclusive), turned)
        dtype = x.dtype
        wide = x.float() if dtype in (torch.float16, torch.bfloat16) and op not in {"max", "min"} else x
        wide = wide.flip(axis) if reverse else wide
        kind = "min" if dtype == torch.bool and op == "prod" else op
        out = _scanned(kind, wide, axis)
        if not inclusive:
            edge = torch.full_like(out.narrow(axis, 0, 1), _identity(op, out.dtype))
            out = torch.cat((edge, out.narrow(axis, 0, out.shape[axis] - 1)), axis)
        out = out.flip(axis) if reverse else out
        return ordered(out.to(dtype), turned)

    return run


# attrs of all: the axis, from the end, with the element itself, whether the type is stored as a signed one
CUMSUM = Primitive("CumSum", _scan("sum"))
CUMPROD = Primitive("CumProd", _scan("prod"))
CUMMAX = Primitive("CumMax", _scan("max"))
CUMMIN = Primitive("CumMin", _scan("min"))
LOGCUMSUMEXP = Primitive("LogCumSumExp", _scan("logsumexp"))


def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (batch,) = arrays, axes
    if batch is None:
        return record(node.op, (x._n,), node.shape, node.dtype, node.attrs), None
    x = moveaxis(x, batch, 0)
    attrs = (node.attrs[0] + 1, *node.attrs[1:])
    return record(node.op, (x._n,), x._n.shape, node.dtype, attrs), 0


for _one in (CUMSUM, CUMPROD, CUMMAX, CUMMIN, LOGCUMSUMEXP):
    _one.vmap = _vmap


@CUMSUM.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    axis, reverse, inclusive, _ = node.attrs
    return (cumsum(cotangent, axis, reverse=not reverse, inclusive=inclusive),)


@CUMSUM.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    axis, reverse, inclusive, _ = node.attrs
    return cumsum(tangents[0], axis, reverse=reverse, inclusive=inclusive)


def _recorded(
    name: str, op: Primitive, a: Any, axis: int | None, reverse: bool, inclusive: bool, dtype: Dtype | None, stream: Any
) -> array:
    if type(a) is not array:
        a = to_array(a)
    to = None if stream is None else as_stream(stream)
    if dtype is not None and a._n.dtype is not dtype:
        a = ops.astype(a, dtype, stream=stream)
    if axis is None:
        a, axis = reshaped(a, (prod(a._n.shape),), to), 0
    node = a._n
    ndim = len(node.shape)
    if not -ndim <= axis < ndim:
        raise out_of_bounds(name, axis, ndim)
    attrs = (axis % ndim, reverse, inclusive, node.dtype.is_unsigned)
    return record(op, (node,), node.shape, node.dtype, attrs, None, to)


def cumsum(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: Any = None,
) -> array:
    """Sum what stands up to each element: ``out[i] = a[0] + … + a[i]``.

    Args:
        a: any shape and type; half types are summed in float32 and rounded once.
        axis: along which; None: the elements as one row.
        reverse: whether to sum from the end.
        inclusive: whether an element counts itself; where not, the first result is 0.
        dtype: the type to sum in; None: that of ``a``, int32 for bool.
        stream: where.

    Returns:
        The shape of ``a``, or one row.

    Raises:
        IndexError: there is no such axis.
    """
    a = to_array(a)
    if dtype is None and a._n.dtype is dtypes.bool_:
        dtype = dtypes.int32
    return _recorded("cumsum", CUMSUM, a, axis, reverse, inclusive, dtype, stream)


def cumprod(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: Any = None,
) -> array:
    """Multiply what stands up to each element; arguments as for ``cumsum``. Exclusive results begin with 1."""
    return _recorded("cumprod", CUMPROD, a, axis, reverse, inclusive, dtype, stream)


def cummax(
    a: array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
) -> array:
    """Return the largest up to each element, NaN from the first NaN on; arguments as for ``cumsum``.

    Exclusive results begin with -inf, or the least number of an integer type.
    """
    return _recorded("cummax", CUMMAX, a, axis, reverse, inclusive, None, stream)


def cummin(
    a: array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
) -> array:
    """Return the smallest up to each element, NaN from the first NaN on; arguments as for ``cumsum``.

    Exclusive results begin with inf, or the largest number of an integer type.
    """
    return _recorded("cummin", CUMMIN, a, axis, reverse, inclusive, None, stream)


def logcumsumexp(
    a: array, /, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
) -> array:
    """Return ``log(exp(a[0]) + … + exp(a[i]))`` without overflow; arguments as for ``cumsum``. Integers give float32.

    Exclusive results begin with -inf.
    """
    a = to_array(a)
    dtype = None if a._n.dtype.is_inexact else dtypes.float32
    return _recorded("logcumsumexp", LOGCUMSUMEXP, a, axis, reverse, inclusive, dtype, stream)


def diff(a: array, /, n: int = 1, axis: int = -1, *, stream: Any = None) -> array:
    """Return the differences of neighbours along an axis, ``n`` times over.

    Args:
        a: any shape and type; bools are compared.
        n: how often.
        axis: along which.
        stream: where.

    Returns:
        The type of ``a``, with ``n`` elements fewer along the axis, or none.

    Raises:
        ValueError: ``n`` is negative.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    if n < 0:
        raise ValueError(f"[diff] Order `n` must be non-negative, got {n}.")
    ndim = len(a._n.shape)
    if not -ndim <= axis < ndim:
        raise out_of_bounds("diff", axis, ndim)
    axis %= ndim
    to = None if stream is None else as_stream(stream)
    apart = ops.not_equal if a._n.dtype is dtypes.bool_ else ops.subtract
    for _ in range(n):
        size = a._n.shape[axis]
        if size < 2:
            return cut(a, axis, 0, 0, to)
        a = apart(cut(a, axis, 1, size, to), cut(a, axis, 0, size - 1, to), stream=stream)
    return a
