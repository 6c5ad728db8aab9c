"""Arrays from nothing: filled ones, ranges, triangles, grids."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import ops
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.construct import checked, default_dtype, filled, imported, key_of
from rocmend.mlx.dtypes import Dtype, bool_, float32, float64, int32, promote
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "linspace",
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


def _shape(shape: Any) -> tuple[int, ...]:
    whole = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in whole:
        if size < 0:
            raise ValueError("[full] Negative dimensions not allowed.")
        if size >= 2**31:
            checked(whole)
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
    x = to_array(a)._n
    return _filled(x.shape, 0, dtype or x.dtype, stream)


empty_like = zeros_like


def ones_like(a: array, /, dtype: Dtype | None = None, *, stream: Any = None) -> array:
    """Return ones of the shape of an array.

    Args:
        a: any array.
        dtype: type of the result; None: that of ``a``.
        stream: where to compute it.
    """
    x = to_array(a)._n
    return _filled(x.shape, 1, dtype or x.dtype, stream)


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
        return _filled(x.shape, vals, target, stream)
    value = ops.astype(to_array(vals, target), target, stream=stream)
    return ops.broadcast_to(value, x.shape, stream=stream)  # type: ignore[no-any-return]


# -- ranges


def _arange(node: Node) -> torch.Tensor:
    (size,) = node.shape
    dtype = node.dtype
    device = node.stream.device.torch
    if node.dyn is not None:
        start, step = node.dyn[0], node.attrs[0]
        values = torch.arange(size, dtype=torch.int64, device=device)
        if step != 1:
            values *= step
        return (values + start if start else values).to(dtype.storage)
    start, step = node.attrs
    wide = torch.float64 if dtype is float64 else torch.float32
    floats: torch.Tensor = torch.arange(size, dtype=wide, device=device) * step + start
    return floats.to(dtype.storage)


# Integers: dyn is (start, stop), attrs is (step,). Others: attrs is (start, step).
ARANGE = Primitive("Arange", _arange)


def arange(*args: Any, dtype: Dtype | None = None, stream: Any = None, **named: Any) -> array:
    """Return the numbers from ``start`` up to, but without, ``stop`` in steps.

    ``arange(stop)``, ``arange(start, stop)``, ``arange(start, stop, step)``, each also with ``dtype`` after them or by
    name. Where ``dtype`` is an integer type, ``start`` and ``start + step`` are rounded towards zero first.

    Args:
        args: ``start`` (0 if it is left out), ``stop``, ``step`` (1) and ``dtype``.
        dtype: type of the result; None: float32 if a number is a float, else int32, or int64 where int32 is too small.
        stream: where to compute it.
        named: ``start``, ``stop`` and ``step`` by name.

    Returns:
        A 1-D array.

    Raises:
        TypeError: the arguments are none of the forms above.
        ValueError: the step is 0, a bound is infinite or NaN, or the type is bool.
    """
    if dtype is None and stream is None and not named and len(args) <= 2:
        start, stop = args if len(args) == 2 else (0, args[0] if args else None)
        if type(start) is int and type(stop) is int and -(2**31) <= start <= stop < 2**31:
            return record(ARANGE, (), (stop - start,), int32, (1,), (start, stop))
    start, stop, step, dtype = _range_arguments(args, named, dtype)
    if dtype is bool_:
        raise ValueError("[arange] bool is not supported; name another type.")
    size = _length(start, stop, step)
    if stream is not None:
        stream = as_stream(stream)
    if not dtype.is_inexact:
        if math.isinf(step):
            step = 1
        first = int(start)
        stride = int(start + step) - first
        return record(ARANGE, (), (size,), dtype, (stride,), (first, first + size * stride), stream)
    step = 0.0 if math.isinf(step) else float(step)
    return record(ARANGE, (), (size,), dtype, (_rounded(start, dtype), _stride(start, step, dtype)), None, stream)


def _rounded(value: float, dtype: Dtype) -> float:
    return torch.tensor(float(value), dtype=dtype.storage).real.item()


def _stride(start: float, step: float, dtype: Dtype) -> float:
    """Return the distance of the first two numbers after rounding, which is the distance of all."""
    one = torch.tensor([float(start), float(start + step)], dtype=torch.float64).to(dtype.storage)
    return (one[1] - one[0]).real.item()


def _range_arguments(args: tuple[Any, ...], named: dict[str, Any], dtype: Any) -> tuple[Any, Any, Any, Any]:
    short = (len(args) == 1 and "stop" not in named) or (len(args) == 3 and type(args[2]) is Dtype)
    names = ("stop", "step", "dtype") if short else ("start", "stop", "step", "dtype")
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or not set(named) <= {"start", "stop", "step"} or set(given) & set(named):
        raise TypeError("[arange] expected arange(stop), arange(start, stop) or arange(start, stop, step).")
    given.update(named)
    dtype = given.get("dtype") if dtype is None else dtype
    start, stop, step = given.get("start", 0), given.get("stop"), given.get("step")
    if stop is None and "stop" in given and "start" in given:
        start, stop = 0, start
    natural = bool_
    for value in (start, stop, 1 if step is None else step):
        if not isinstance(value, int | float):
            raise TypeError(f"[arange] expected numbers, got {type(value).__name__}.")
    for value in (given.get("start"), stop, step):
        if value is not None:
            natural = promote(natural, default_dtype(value))
    return start, stop, 1 if step is None else step, dtype or natural


def _length(start: Any, stop: Any, step: Any) -> int:
    if math.isnan(start) or math.isnan(stop) or math.isnan(step) or math.isinf(start) or math.isinf(stop):
        raise ValueError(f"[arange] Cannot compute length from start {start}, stop {stop}, step {step}.")
    if step == 0:
        raise ValueError("[arange] step must be nonzero.")
    if math.isinf(step):
        return int((step > 0 and start < stop) or (step < 0 and start > stop))
    size = -((start - stop) // step) if isinstance(start + stop + step, int) else math.ceil((stop - start) / step)
    if size >= 2**31:
        raise ValueError("[arange] Maximum size exceeded.")
    return max(int(size), 0)


def linspace(
    start: Any,
    stop: Any,
    num: int | None = 50,
    endpoint: bool = True,
    dtype: Dtype | None = float32,
    stream: Any = None,
) -> array:
    """Return numbers at equal distances.

    Args:
        start: the first number.
        stop: the last number, or the one after it if ``endpoint`` is False.
        num: how many.
        endpoint: whether ``stop`` is the last number.
        dtype: type of the result; None: float32.
        stream: where to compute it.

    Returns:
        A 1-D array of ``num`` elements.

    Raises:
        ValueError: ``num`` is negative.
    """
    count = 50 if num is None else num
    dtype = dtype or float32
    if count < 0:
        raise ValueError(f"[linspace] number of samples, {count}, must be non-negative.")
    if count == 1:
        return _filled(1, start, dtype, stream)
    inner = float64 if dtype is float64 else float32
    t = ops.divide(arange(0, count, dtype=inner, stream=stream), float(count - 1 if endpoint else count), stream)
    rest = ops.subtract(1.0, t, stream)
    whole = ops.add(ops.multiply(rest, float(start), stream), ops.multiply(t, float(stop), stream), stream)
    return ops.astype(whole, dtype, stream=stream)  # type: ignore[no-any-return]


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
