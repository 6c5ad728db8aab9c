"""Draws of integers, truth values, classes and orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array
from rocmend.mlx.construct import constant
from rocmend.mlx.random.continuous import gumbel, uniform
from rocmend.mlx.random.keys import bits, shape_of
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype

__all__ = ["bernoulli", "categorical", "permutation", "randint"]

# MLX multiplies a probability with the float32 above 2³², so that 1 is above all words.
_ABOVE_WORDS = 4294967808.0


def randint(
    low: Any, high: Any, shape: Sequence[int] = (), dtype: Dtype | None = dtypes.int32, key: array | None = None,
    stream: Any = None,
) -> array:  # fmt: skip
    """Draw integers from ``[low, high)``, all as likely.

    They come from float32 numbers, as in MLX: not all of an interval are reached beyond 2²⁴.

    Args:
        low: least number, or an array of them that broadcasts to ``shape``.
        high: the bound, likewise.
        shape: of the result.
        dtype: an integer type or bool; None: int32.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Integers of ``shape``.

    Raises:
        ValueError: another type, or shapes that do not fit.
    """
    dtype = dtypes.int32 if dtype is None else dtype
    if dtype.is_inexact:
        raise ValueError(f"[randint] Only integer types and bool are supported, got {dtype}.")
    drawn = uniform(low, high, shape, dtypes.float32, key, stream)
    whole = ops.astype(ops.floor(drawn, stream=stream), dtype, stream=stream)
    if dtype is dtypes.bool_:
        return whole  # type: ignore[no-any-return]
    # Bounds that the type does not hold wrap before they bound, as in MLX
    least = ops.astype(to_array(low), dtype, stream=stream)
    most = ops.subtract(ops.astype(to_array(high), dtype, stream=stream), constant(1, dtype), stream=stream)
    return ops.maximum(ops.minimum(whole, most, stream=stream), least, stream=stream)  # type: ignore[no-any-return]


def bernoulli(p: Any = 0.5, shape: Sequence[int] | None = None, key: array | None = None, stream: Any = None) -> array:
    """Draw True with probability ``p``.

    Args:
        p: the probability, or an array of them that broadcasts to ``shape``.
        shape: of the result; None: that of p.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Truth values of ``shape``.

    Raises:
        ValueError: p is of no floating type, or does not fit.
    """
    p = to_array(p)
    if not p.dtype.is_float:
        raise ValueError(f"[bernoulli] The probability `p` must be of a float type, got {p.dtype}.")
    sizes = p.shape if shape is None else shape_of(shape)
    if broadcast_shapes(sizes, p.shape) != sizes:
        raise ValueError(
            f"[bernoulli] Cannot generate random values of shape {shape_text(sizes)} for p of {shape_text(p.shape)}."
        )
    drawn = ops.astype(bits(sizes, 4, key, stream), dtypes.float32, stream=stream)
    bound = ops.multiply(p, constant(_ABOVE_WORDS, dtypes.float32), stream=stream)
    return ops.less(drawn, bound, stream=stream)  # type: ignore[no-any-return]


def categorical(
    logits: array, axis: int = -1, shape: Sequence[int] | None = None, num_samples: int | None = None,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw indices along an axis with the probabilities ``softmax(logits)``.

    Args:
        logits: any shape.
        axis: whose index is drawn.
        shape: of the result, to which the shape of logits without the axis broadcasts.
        num_samples: how many for each; they are the last axis. Not beside ``shape``.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        uint32 of ``shape``; where neither is given of the shape of logits without the axis.

    Raises:
        ValueError: both ``shape`` and ``num_samples``, or a shape that does not fit.
        IndexError: there is no such axis.
    """
    logits = to_array(logits)
    ndim = len(logits.shape)
    if shape is not None and num_samples is not None:
        raise ValueError("[categorical] At most one of shape or num_samples can be specified.")
    if not -ndim <= axis < ndim:
        raise AxisError(f"[categorical] Invalid axis {axis} for logits with {ndim} dimensions.")
    axis -= ndim if axis >= 0 else 0
    if math.prod(logits.shape) == logits.shape[axis]:
        sizes = _sizes_of_single(logits.shape, axis, shape, num_samples)
        if sizes:
            return _from_single(logits, sizes, key, stream)
    rest = logits.shape[:axis] + logits.shape[ndim + axis + 1 :]
    if num_samples is not None:
        noise = (*logits.shape, num_samples)
        logits, axis = ops.expand_dims(logits, -1, stream=stream), axis - 1
    else:
        sizes = rest if shape is None else shape_of(shape)
        if broadcast_shapes(sizes, rest) != sizes:
            raise ValueError(
                f"[categorical] Requested shape {shape_text(sizes)} is not one to which {shape_text(rest)} broadcasts."
            )
        place = len(sizes) + axis + 1
        noise = (*sizes[:place], logits.shape[axis], *sizes[place:])
    drawn = ops.add(logits, gumbel(noise, dtypes.float32, key, stream), stream=stream)
    return ops.argmax(drawn, axis, stream=stream)  # type: ignore[no-any-return]


def _sizes_of_single(
    logits: tuple[int, ...], axis: int, shape: Sequence[int] | None, num_samples: int | None
) -> tuple[int, ...]:
    """Return the shape of draws from one distribution."""
    rest = logits[:axis] + logits[len(logits) + axis + 1 :]
    if num_samples is not None:
        return (*rest, num_samples)
    return rest if shape is None else shape_of(shape)


def _from_single(logits: array, sizes: tuple[int, ...], key: array | None, stream: Any) -> array:
    """Draw from one distribution, through its cumulated probabilities: cheaper than noise for each class and draw."""
    if not logits.shape or 0 in logits.shape:
        raise ValueError("[categorical] Cannot draw from a distribution without classes.")
    flat = ops.astype(ops.reshape(logits, (-1,), stream=stream), dtypes.float32, stream=stream)
    top = ops.max(flat, 0, True, stream=stream)
    cumulated = ops.cumsum(ops.exp(ops.subtract(flat, top, stream=stream), stream=stream), 0, stream=stream)
    drawn = uniform(0, 1, sizes, dtypes.float32, key, stream)
    wanted = ops.multiply(drawn, cumulated[-1], stream=stream)
    place = ops.searchsorted(cumulated, wanted, "right", stream=stream)
    return ops.minimum(place, flat.shape[0] - 1, stream=stream)  # type: ignore[no-any-return]


def permutation(x: Any, axis: int = 0, key: array | None = None, stream: Any = None) -> array:
    """Draw an order, or bring an array into one.

    Args:
        x: a number: of what is ordered; or an array.
        axis: along which the array is brought into an order.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        ``[x]`` uint32, or the shape and type of the array.

    Raises:
        IndexError: there is no such axis.
    """
    if isinstance(x, int):
        return ops.argsort(bits((x,), 4, key, stream), stream=stream)  # type: ignore[no-any-return]
    x = to_array(x)
    if not -len(x.shape) <= axis < len(x.shape):
        raise AxisError(f"[permutation] Invalid axis {axis} for array with {len(x.shape)} dimensions.")
    order = ops.argsort(bits((x.shape[axis],), 4, key, stream), stream=stream)
    return ops.take(x, order, axis, stream=stream)  # type: ignore[no-any-return]
