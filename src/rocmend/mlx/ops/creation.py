"""Arrays from nothing: filled ones, ranges, triangles, grids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.construct import checked, default_dtype, filled, imported, key_of
from rocmend.mlx.dtypes import Dtype, bool_, float32
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = [
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

# -- one value everywhere


def _full(node: Node) -> torch.Tensor:
    return filled(node.shape, node.attrs, node.dtype, node.stream.device.torch)


FULL = Primitive("Full", _full)


def _full_like(node: Node, x: torch.Tensor) -> torch.Tensor:
    return filled(tuple(x.shape), node.attrs, node.dtype, node.stream.device.torch)


# Of the shape of an input, in bodies whose shapes may change.
FULL_LIKE = Primitive("FullLike", _full_like, vjp=lambda node, primals, output, cotangent: (None,))


@FULL_LIKE.rule("jvp")
def _full_like_jvp(node: Node, primals: Any, tangents: Any, output: array) -> array:
    return zeros_like(output)


@FULL_LIKE.rule("vmap")
def _full_like_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    x = arrays[0]._n
    return record(FULL_LIKE, (x,), x.shape, node.dtype, node.attrs, None, node.stream), axes[0]


def _filled_like(x: Node, value: Any, dtype: Dtype | None, stream: Any) -> array:
    dtype = dtype or x.dtype
    if not current.state.shapeless:
        return _filled(x.shape, value, dtype, stream)
    where = stream if stream is None else as_stream(stream)
    return record(FULL_LIKE, (x,), x.shape, dtype, key_of(value), None, where)


def _shape(shape: Any) -> tuple[int, ...]:
    whole = (shape,) if isinstance(shape, int) else tuple(shape)
    if whole and (min(whole) < 0 or max(whole) >= 2**31):
        checked(whole)
        raise ValueError(f"[full] Negative dimensions not allowed, got {shape_text(whole)}.")
    return whole


def _filled(shape: Any, value: Any, dtype: Dtype, stream: Any) -> array:
    return record(FULL, (), _shape(shape), dtype, key_of(value), None, stream if stream is None else as_stream(stream))


def full(shape: Any, vals: Any, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return an array filled with a value.

    Args:
        shape: a size or a sequence of sizes.
        vals: a number, or an array that can be broadcast to ``shape``.
        dtype: type that a number takes if it can hold it (a float does not become an integer); an array keeps its own.
        stream: where to compute it.

    Returns:
        An array of ``shape``.

    Raises:
        ValueError: a size is negative, or ``vals`` cannot be broadcast.
    """
    if isinstance(vals, bool | int | float | complex):
        if dtype is None or dtype is bool_:
            dtype = dtype if dtype is bool_ and isinstance(vals, bool) else default_dtype(vals)
        elif isinstance(vals, float) and not dtype.is_inexact:
            dtype = float32
        elif isinstance(vals, complex) and not isinstance(vals, float | int):
            dtype = default_dtype(vals)
        return _filled(shape, vals, dtype, stream)
    return ops.broadcast_to(to_array(vals, dtype), _shape(shape), stream=stream)  # type: ignore[no-any-return]


def zeros(shape: Any, dtype: Dtype | None = float32, *, stream: Any = None) -> array:
    """Return an array of zeros.

    Args:
        shape: a size or a sequence of sizes.
        dtype: type of the result; None: float32.
        stream: where to compute it.
    """
    return _filled(shape, 0, _known("zeros", dtype), stream)


def ones(shape: Any, dtype: Dtype | None = float32, *, stream: Any = None) -> array:
    """Return an array of ones.

    Args:
        shape: a size or a sequence of sizes.
        dtype: type of the result; None: float32.
        stream: where to compute it.
    """
    return _filled(shape, 1, _known("ones", dtype), stream)


def _known(op: str, dtype: Dtype | None) -> Dtype:
    if dtype is None:
        return float32
    if type(dtype) is not Dtype:
        raise TypeError(f"[{op}] expected a Dtype such as mlx.core.float32, got {dtype!r}.")
    return dtype


# memory is not left as it was found: what it holds would not be the same twice
empty = zeros


def zeros_like(a: array, /, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return zeros of the shape of an array.

    Args:
        a: any array.
        dtype: type of the result; None: that of ``a``.
        stream: where to compute it.
    """
    return _filled_like(to_array(a)._n, 0, dtype, stream)


empty_like = zeros_like


def ones_like(a: array, /, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return ones of the shape of an array.

    Args:
        a: any array.
        dtype: type of the result; None: that of ``a``.
        stream: where to compute it.
    """
    return _filled_like(to_array(a)._n, 1, dtype, stream)


def full_like(a: array, vals: Any, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return an array of the shape of another, filled with a value.

    Args:
        a: any array.
        vals: a number, or an array that can be broadcast to the shape of ``a``.
        dtype: type of the result; None: that of ``a``.
        stream: where to compute it.
    """
    x = to_array(a)._n
    target = dtype or x.dtype
    if isinstance(vals, bool | int | float | complex):
        return _filled_like(x, vals, target, stream)
    value = ops.astype(to_array(vals, target), target, stream=stream)
    return ops.broadcast_to(value, x.shape, stream=stream)  # type: ignore[no-any-return]


# -- matrices


def _tri(node: Node) -> torch.Tensor:
    rows, columns = node.shape
    device = node.stream.device.torch
    row = torch.arange(rows, device=device).unsqueeze(1)
    column = torch.arange(-node.attrs, columns - node.attrs, device=device)
    return (row >= column).to(node.dtype.storage)


def _eye(node: Node) -> torch.Tensor:
    rows, columns = node.shape
    device = node.stream.device.torch
    row = torch.arange(rows, device=device).unsqueeze(1)
    column = torch.arange(-node.attrs, columns - node.attrs, device=device)
    return (row == column).to(node.dtype.storage)


TRI = Primitive("Tri", _tri)
EYE = Primitive("Eye", _eye)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = float32, *, stream: Any = None) -> array:
    """Return a matrix of ones on a diagonal and zeros elsewhere.

    Args:
        n: number of rows.
        m: number of columns; None: ``n``.
        k: which diagonal: positive above the main one, negative below it.
        dtype: type of the result; None: float32.
        stream: where to compute it.

    Returns:
        An array of the shape ``(n, m)``.

    Raises:
        ValueError: a size is negative.
    """
    columns = n if m is None else m
    if n < 0 or columns < 0:
        raise ValueError(f"[eye] N and M must be positive integers, got {n} and {columns}.")
    stream = stream if stream is None else as_stream(stream)
    return record(EYE, (), (n, columns), dtype or float32, k, None, stream)


def identity(n: int, dtype: Dtype | None = float32, *, stream: Any = None) -> array:
    """Return the identity matrix.

    Args:
        n: number of rows and columns.
        dtype: type of the result; None: float32.
        stream: where to compute it.
    """
    return eye(n, n, 0, dtype, stream=stream)


def tri(n: int, m: int | None = None, k: int = 0, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return a matrix of ones on and below a diagonal and zeros above it.

    Args:
        n: number of rows.
        m: number of columns; None: ``n``.
        k: which diagonal: positive above the main one, negative below it.
        dtype: type of the result; None: float32.
        stream: where to compute it.

    Returns:
        An array of the shape ``(n, m)``.
    """
    shape = _shape((n, n if m is None else m))
    return record(TRI, (), shape, dtype or float32, k, None, stream if stream is None else as_stream(stream))


def _triangle(op: str, x: Any, k: int, stream: Any) -> array:
    if x.ndim < 2:
        raise ValueError(f"[{op}] array must be at least 2-D, got {x.ndim} dimensions.")
    return tri(x.shape[-2], x.shape[-1], k, bool_, stream=stream)


def tril(x: array, k: int = 0, *, stream: Any = None) -> array:
    """Return an array with zeros above a diagonal.

    Args:
        x: array of two or more dimensions; the last two are the matrices.
        k: which diagonal: positive above the main one, negative below it.
        stream: where to compute it.

    Raises:
        ValueError: ``x`` has fewer than two dimensions.
    """
    x = to_array(x)
    return ops.where(_triangle("tril", x, k, stream), x, _filled((), 0, x._n.dtype, stream), stream=stream)  # type: ignore[no-any-return]


def triu(x: array, k: int = 0, *, stream: Any = None) -> array:
    """Return an array with zeros below a diagonal.

    Args:
        x: array of two or more dimensions; the last two are the matrices.
        k: which diagonal: positive above the main one, negative below it.
        stream: where to compute it.

    Raises:
        ValueError: ``x`` has fewer than two dimensions.
    """
    x = to_array(x)
    return ops.where(_triangle("triu", x, k - 1, stream), _filled((), 0, x._n.dtype, stream), x, stream=stream)  # type: ignore[no-any-return]


def meshgrid(
    *arrays: array, sparse: bool | None = False, indexing: str | None = "xy", stream: Any = None
) -> tuple[array, ...]:
    """Return the coordinates of a grid.

    Args:
        arrays: the coordinates along each axis, 1-D or scalars.
        sparse: leave the axes of the other coordinates at size 1.
        indexing: ``"xy"``: the first two axes of the grid are exchanged; ``"ij"``: they are in order.
        stream: where to compute it.

    Returns:
        As many arrays as were given.

    Raises:
        ValueError: ``indexing`` is neither.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("[meshgrid] Invalid indexing value. Valid values are 'xy' and 'ij'.")
    found = []
    for i, x in enumerate(arrays):
        shape = [1] * len(arrays)
        place = 1 - i if indexing == "xy" and len(arrays) > 1 and i < 2 else i
        shape[place] = -1 if x.size else 0
        found.append(ops.reshape(x, shape, stream=stream))
    return tuple(found) if sparse or not found else tuple(ops.broadcast_arrays(*found, stream=stream))


# -- from others


def asarray(a: Any, dtype: Dtype | None = None, *, copy: bool | None = None) -> array:
    """Return an array of anything that is one, or of numbers.

    Args:
        a: array, number, list, tuple, or an array of another library.
        dtype: type of the result; None: as :class:`array` chooses it.
        copy: False: take the memory of a GPU array or raise; True or None: copy.

    Returns:
        An array.

    Raises:
        ValueError: ``copy`` is False and a copy is needed.
    """
    if isinstance(a, array | bool | int | float | complex | list | tuple):
        if copy is False:
            raise ValueError("[asarray] Unable to avoid copy while creating an array as requested.")
        return array(a, dtype)
    if hasattr(a, "__mlx_array__"):
        return array(a, dtype)
    return imported(a, dtype, copy=copy)


def from_dlpack(x: Any, /, *, copy: bool | None = None) -> array:
    """Return an array of what speaks DLPack.

    Args:
        x: the object, with ``__dlpack__``.
        copy: False: take the memory of a GPU array or raise; True or None: copy.

    Returns:
        An array.

    Raises:
        TypeError: ``x`` does not speak DLPack.
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"[from_dlpack] expected an object with __dlpack__, got {type(x).__name__}.")
    return imported(x, copy=copy)
