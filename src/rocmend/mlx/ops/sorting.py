"""Order: sort, partition, the largest elements, and where they stand. NaN stands behind everything."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import uint32
from rocmend.mlx.ops.gather import taken_along
from rocmend.mlx.ops.reduce_plan import axis_of, plan
from rocmend.mlx.ops.scatter import put_along
from rocmend.mlx.ops.shape import out_of_bounds, reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.slices import cut
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__ = ["argmax", "argmin", "argpartition", "argsort", "partition", "sort", "topk"]


def _places(x: torch.Tensor, axis: int, unsigned: bool) -> torch.Tensor:
    """Return where the elements in order stand, as torch finds it; equal ones keep their order."""
    import torch

    if x.is_complex():
        # by the imaginary part, then by the real one; NaN last
        nan = x.isnan()
        first = torch.sort(torch.where(nan, float("nan"), x.imag), dim=axis, stable=True).indices
        real = torch.where(nan, float("nan"), x.real).gather(axis, first)
        return first.gather(axis, torch.sort(real, dim=axis, stable=True).indices)
    return torch.sort(ordered(x, unsigned), dim=axis, stable=True).indices


def ordered(x: torch.Tensor, unsigned: bool) -> torch.Tensor:
    """Return numbers in the order of the elements, of a type that torch orders."""
    import torch

    return x ^ torch.iinfo(x.dtype).min if unsigned else x


def seen(x: torch.Tensor, unsigned: bool) -> torch.Tensor:
    """Return numbers as the type that their elements are of, without a copy: the kernels order all of them."""
    import torch

    wide = {torch.int16: torch.uint16, torch.int32: torch.uint32, torch.int64: torch.uint64}
    return x.view(wide.get(x.dtype, x.dtype)) if unsigned else x


def _sort(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axis, unsigned = node.attrs
    if x.is_complex():
        return x.gather(axis, _places(x, axis, unsigned))
    if x.is_cuda:
        from rocmend.kernels.ops.rowwise.sort.function import sort as kernel

        return kernel(seen(x, unsigned), axis).view(x.dtype)
    keys = ordered(x, unsigned)
    return ordered(torch.sort(keys, dim=axis, stable=True).values, unsigned)


def _argsort(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axis, unsigned = node.attrs
    if x.is_cuda and not x.is_complex():
        from rocmend.kernels.ops.rowwise.sort.function import argsort as kernel

        return kernel(seen(x, unsigned), axis, index_dtype=torch.int32)
    return _places(x, axis, unsigned).to(torch.int32)


# attrs of both: the axis, whether the type is stored as a signed one
SORT = Primitive("Sort", _sort)
ARGSORT = Primitive("ArgSort", _argsort)


def _in_order(x: array, values: array, axis: int) -> array:
    """Return ``values`` in the order of ``x``."""
    return taken_along(values, _order(x, axis), axis)


def _order(x: array, axis: int | None) -> array:
    """Return where the elements go, through which no derivative goes."""
    return ops.stop_gradient(argsort(x, axis))  # type: ignore[no-any-return]


@SORT.rule("vjp")
def _sort_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    axis = node.attrs[0]
    zeros = ops.zeros(node.shape, cotangent._n.dtype)
    return (put_along(zeros, _order(x, axis), cotangent, axis, "add"),)


@SORT.rule("jvp")
def _sort_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return _in_order(primals[0], tangents[0], node.attrs[0])


def _no_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    return (None,)


def _no_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return ops.zeros_like(output)


def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    if axis is None:
        return record(node.op, (x._n,), node.shape, node.dtype, node.attrs), None
    x = moveaxis(x, axis, 0)
    along, *rest = node.attrs
    size = x._n.shape[0]
    return record(node.op, (x._n,), (size, *node.shape), node.dtype, (along + 1, *rest)), 0


ARGSORT.vjp, ARGSORT.jvp = _no_vjp, _no_jvp
SORT.vmap = ARGSORT.vmap = _vmap


def _sorted(name: str, op: Primitive, a: Any, axis: int | None, stream: Any, kth: int | None = None) -> array:
    if type(a) is not array:
        a = to_array(a)
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        a, axis = reshaped(a, (prod(a._n.shape),), stream), 0
    node = a._n
    ndim = len(node.shape)
    if not -ndim <= axis < ndim:
        raise out_of_bounds(name, axis, ndim)
    if axis < 0:
        axis += ndim
    if kth is not None:
        size = node.shape[axis]
        if not -size <= kth < size:
            raise ValueError(
                f"[{name}] Received invalid kth {kth} along axis {axis} for array with shape: {shape_text(node.shape)}"
            )
    dtype = node.dtype if op is SORT else uint32
    return record(op, (node,), node.shape, dtype, (axis, node.dtype.is_unsigned), None, stream)


def sort(a: array, /, axis: int | None = -1, *, stream: Any = None) -> array:
    """Return the elements in order along an axis, the smallest first; equal ones keep their order, NaN stands last.

    Args:
        a: any shape and type; complex numbers are ordered by their real, then their imaginary part.
        axis: which; None: the elements as one row.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        IndexError: there is no such axis.
    """
    return _sorted("sort", SORT, a, axis, stream)


def argsort(a: array, /, axis: int | None = -1, *, stream: Any = None) -> array:
    """Return the places of the elements in order; arguments as for ``sort``, uint32."""
    return _sorted("argsort", ARGSORT, a, axis, stream)


def partition(a: array, /, kth: int, axis: int | None = -1, *, stream: Any = None) -> array:
    """Return the elements with the ``kth`` where order puts it, smaller ones in front, larger ones behind.

    Args:
        a: any shape and type.
        kth: which; negative ones count from the end.
        axis: along which; None: the elements as one row.
        stream: where.

    Returns:
        The type of ``a``. The elements stand wholly in order.

    Raises:
        IndexError: there is no such axis.
        ValueError: there is no such element.
    """
    return _sorted("partition", SORT, a, axis, stream, kth)


def argpartition(a: array, /, kth: int, axis: int | None = -1, *, stream: Any = None) -> array:
    """Return the places of the elements as ``partition`` puts them; arguments as there, uint32."""
    return _sorted("argpartition", ARGSORT, a, axis, stream, kth)


def _topk(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axis, unsigned = node.attrs
    k = node.shape[axis]
    if x.is_complex():
        return x.gather(axis, _places(x, axis, unsigned)).narrow(axis, x.shape[axis] - k, k)
    keys = ordered(x, unsigned)
    if x.is_cuda:
        from rocmend.kernels.ops.rowwise.topk.function import topk as kernel

        return ordered(kernel(keys, k, axis).values.flip(axis), unsigned)
    if keys.dtype == torch.bool:
        keys = keys.to(torch.uint8)
    return ordered(torch.topk(keys, k, axis).values.flip(axis).to(x.dtype), unsigned)


# attrs: as for Sort; how many stands in the shape
TOPK = Primitive("TopK", _topk)


def _largest(x: array, node: Any) -> array:
    axis = node.attrs[0]
    size = x._n.shape[axis]
    return cut(_order(x, axis), axis, size - node.shape[axis], size)


@TOPK.rule("vjp")
def _topk_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    zeros = ops.zeros(x._n.shape, cotangent._n.dtype)
    return (put_along(zeros, _largest(x, node), cotangent, node.attrs[0], "add"),)


@TOPK.rule("jvp")
def _topk_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return taken_along(tangents[0], _largest(primals[0], node), node.attrs[0])


TOPK.vmap = _vmap


def topk(a: array, /, k: int, axis: int | None = -1, *, stream: Any = None) -> array:
    """Return the ``k`` largest elements along an axis, the largest last. NaN is larger than everything.

    Args:
        a: any shape and type.
        k: how many.
        axis: along which; None: the elements as one row.
        stream: where.

    Returns:
        The type of ``a``, with ``k`` along the axis.

    Raises:
        IndexError: there is no such axis.
        ValueError: there are fewer elements.
    """
    a = to_array(a)
    to = None if stream is None else as_stream(stream)
    if axis is None:
        a, axis = reshaped(a, (prod(a._n.shape),), to), 0
    node = a._n
    shape = node.shape
    ndim = len(shape)
    if not -ndim <= axis < ndim:
        raise out_of_bounds("topk", axis, ndim)
    axis %= ndim
    if not 0 <= k <= shape[axis]:
        raise ValueError(f"[topk] Received invalid k={k} along axis {axis} for array with shape: {shape_text(shape)}")
    out = (*shape[:axis], k, *shape[axis + 1 :])
    return record(TOPK, (node,), out, node.dtype, (axis, node.dtype.is_unsigned), None, to)


def _arg_reduce(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axis, _, largest, unsigned = node.attrs
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.is_complex():
        places = _places(x, axis, unsigned)
        nan = x.isnan().gather(axis, places)
        size = x.shape[axis]
        if not largest:
            best = x.gather(axis, places).narrow(axis, 0, 1)
        else:
            best = x.gather(axis, places).narrow(axis, size - 1, 1)
        found = torch.where(nan.any(axis, keepdim=True), x.isnan(), x == best).to(torch.uint8).argmax(axis)
        return found.to(torch.int32).reshape(node.shape)
    x = ordered(x, unsigned)
    if x.is_cuda:
        from rocmend.kernels.ops.rowwise.arg_reduce import function

        kernel = function.argmax if largest else function.argmin
        return kernel(x, axis, index_dtype=torch.int32).reshape(node.shape)
    if x.dtype == torch.bool:
        x = x.to(torch.uint8)
    found = x.argmax(axis) if largest else x.argmin(axis)
    return found.to(torch.int32).reshape(node.shape)


# attrs: the axis or None, whether it stays, whether the largest is wanted, whether the type is stored as a signed one
ARG_REDUCE = Primitive("ArgReduce", _arg_reduce, vjp=_no_vjp, jvp=_no_jvp)


@ARG_REDUCE.rule("vmap")
def _arg_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (batch,) = arrays, axes
    axis, keepdims, largest, unsigned = node.attrs
    if batch is not None:
        x = moveaxis(x, batch, 0)
        size, *shape = x._n.shape
        if axis is None:
            x, axis = reshaped(x, (size, prod(shape))), 0
        attrs = (axis + 1, keepdims, largest, unsigned)
        return record(ARG_REDUCE, (x._n,), (size, *node.shape), uint32, attrs), 0
    return record(ARG_REDUCE, (x._n,), node.shape, uint32, node.attrs), None


def _arg(name: str, a: Any, axis: int | None, keepdims: bool, largest: bool, stream: Any) -> array:
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    if 0 in node.shape:
        raise ValueError(f"[{name}] Cannot {name} reduce zero size array.")
    _, shape = plan(node.shape, axis, keepdims)
    if axis is not None:
        axis = axis_of(axis, len(node.shape))
    attrs = (axis, keepdims, largest, node.dtype.is_unsigned)
    return record(ARG_REDUCE, (node,), shape, uint32, attrs, None, None if stream is None else as_stream(stream))


def argmax(a: array, /, axis: int | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return where the largest element along an axis stands: the first NaN, else the first of equal ones.

    Args:
        a: any shape and type.
        axis: which; None: among all elements as one row.
        keepdims: whether reduced axes stay, with size 1.
        stream: where.

    Returns:
        uint32.

    Raises:
        IndexError: there is no such axis.
        ValueError: there are no elements.
    """
    return _arg("argmax", a, axis, keepdims, True, stream)


def argmin(a: array, /, axis: int | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return where the smallest element along an axis stands; arguments as for ``argmax``."""
    return _arg("argmin", a, axis, keepdims, False, stream)
