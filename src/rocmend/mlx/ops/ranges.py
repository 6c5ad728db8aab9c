"""Ranges of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream
from rocmend.mlx.array import array, record
from rocmend.mlx.construct import default_dtype
from rocmend.mlx.dtypes import Dtype, bool_, float32, float64, int32, promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["arange", "linspace"]


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
        return ops.full_like(ops.zeros((1,), dtype), start, stream=stream)  # type: ignore[no-any-return]
    inner = float64 if dtype is float64 else float32
    t = ops.divide(arange(0, count, dtype=inner, stream=stream), float(count - 1 if endpoint else count), stream)
    rest = ops.subtract(1.0, t, stream)
    whole = ops.add(ops.multiply(rest, float(start), stream), ops.multiply(t, float(stop), stream), stream)
    return ops.astype(whole, dtype, stream=stream)  # type: ignore[no-any-return]
