"""Variance, standard deviation, median, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.reduce import _batched, mean, sum
from rocmend.mlx.ops.reduce_plan import Axis, plan, restored
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_axes import permuted
from rocmend.mlx.ops.slices import cut
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__ = ["logsumexp", "median", "std", "var"]


def _floating(a: Any, stream: Any) -> array:
    """Return an array of an inexact type: float32 for integers."""
    a = to_array(a)
    return a if a._n.dtype.is_inexact else ops.astype(a, dtypes.float32, stream=stream)  # type: ignore[no-any-return]


def var(a: array, /, axis: Axis = None, keepdims: bool = False, ddof: int = 0, *, stream: Any = None) -> array:
    """Return the variance over axes: ``sum(|a - mean(a)|²) / (n - ddof)``.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        ddof: what is taken from the number of elements.
        stream: where.

    Returns:
        The type of ``a``; float32 for integers and complex numbers. Half types are computed in float32.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    a = _floating(a, stream)
    dtype = a._n.dtype
    axes, _ = plan(a._n.shape, axis, keepdims)
    wide = ops.astype(a, dtypes.float32, stream=stream) if dtype.is_float and dtype.size == 2 else a
    apart = ops.subtract(wide, mean(wide, axes, True, stream=stream), stream=stream)
    if dtype.is_complex:
        apart, dtype = ops.abs(apart, stream=stream), dtypes.float32
    squares = ops.square(apart, stream=stream)
    if ddof:
        count = prod([a._n.shape[one] for one in axes])
        # nothing left to divide by: infinite, as it is divided by 0
        total = sum(squares, axes, keepdims, stream=stream)
        found = ops.divide(total, float(max(count - ddof, 0)), stream=stream)
    else:
        found = mean(squares, axes, keepdims, stream=stream)
    return ops.astype(found, dtype, stream=stream)  # type: ignore[no-any-return]


def std(a: array, /, axis: Axis = None, keepdims: bool = False, ddof: int = 0, *, stream: Any = None) -> array:
    """Return the standard deviation over axes, the square root of ``var``; arguments as there."""
    return ops.sqrt(var(a, axis, keepdims, ddof, stream=stream), stream=stream)  # type: ignore[no-any-return]


def median(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return the middle element in order over axes, or the mean of the middle two; NaN where there is one.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        The type of ``a``, float32 for integers.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice, or has no elements.
    """
    a = _floating(a, stream)
    old = a._n.shape
    axes, shape = plan(old, axis, keepdims)
    rest = [one for one in range(len(old)) if one not in axes]
    size = prod([old[one] for one in axes])
    if size == 0:
        raise ValueError("[median] Cannot take median along empty axis.")
    to = None if stream is None else as_stream(stream)
    rows = reshaped(permuted(a, (*rest, *axes), to), (*[old[one] for one in rest], size), to)
    rows = ops.sort(rows, -1, stream=stream)
    last = len(rest)
    middle = cut(rows, last, size // 2, size // 2 + 1, to)
    if size % 2 == 0:
        middle = ops.add(cut(rows, last, size // 2 - 1, size // 2, to), middle, stream=stream)
        middle = ops.multiply(middle, 0.5, stream=stream)
    # NaN stands at the end
    end = cut(rows, last, size - 1, size, to)
    middle = ops.where(ops.isnan(end, stream=stream), end, middle, stream=stream)
    return reshaped(middle, shape, to)


def _logsumexp(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axes, keepdims, dtype = node.attrs
    if dtype.is_complex:
        top = x.real.amax(axes, keepdim=True)
        top = torch.where(top.isfinite(), top, 0.0)
        return ((x - top).exp().sum(axes, keepdim=True).log() + top).reshape(node.shape)
    if x.is_cuda and dtype is not dtypes.float64 and not x.requires_grad:
        from rocmend.kernels.ops.rowwise.logsumexp.function import logsumexp as kernel

        return kernel(x, axes, keepdims=keepdims)
    if dtype.size == 2:
        return x.float().logsumexp(axes, keepdims).to(x.dtype)
    return x.logsumexp(axes, keepdims)


# attrs: as for sums
LOGSUMEXP = Primitive("LogSumExp", _logsumexp, vmap=_batched)


def _weights(node: Any, x: array, output: array) -> array:
    """Return the derivatives of the elements: the softmax, as the output has been rounded to its type already."""
    if not node.dtype.is_complex:
        return ops.softmax(x, node.attrs[0], precise=True)  # type: ignore[no-any-return]
    return ops.exp(ops.subtract(x, reshaped(output, restored(x._n.shape, node.attrs[0]))))  # type: ignore[no-any-return]


@LOGSUMEXP.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    wide = reshaped(cotangent, restored(x._n.shape, node.attrs[0]))
    weights = _weights(node, x, output)
    return (ops.multiply(wide, ops.conjugate(weights) if node.dtype.is_complex else weights),)


@LOGSUMEXP.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return sum(ops.multiply(tangents[0], _weights(node, primals[0], output)), node.attrs[0], node.attrs[1])


def logsumexp(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return ``log(sum(exp(a)))`` over axes, without overflow.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        The type of ``a``, float32 for integers.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice, or ``a`` has no elements.
    """
    a = _floating(a, stream)
    node = a._n
    if 0 in node.shape:
        raise ValueError("[logsumexp] Received empty array.")
    axes, shape = plan(node.shape, axis, keepdims)
    if not axes:
        return a
    to = None if stream is None else as_stream(stream)
    return record(LOGSUMEXP, (node,), shape, node.dtype, (axes, keepdims, node.dtype), None, to)
