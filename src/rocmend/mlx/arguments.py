"""What public functions share: arrays from anything, axes, broadcast shapes, streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.array import array
from rocmend.mlx.construct import constant, default_dtype
from rocmend.mlx.device import Device, DeviceType, Stream, default_stream_of
from rocmend.mlx.node import current

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype

__all__ = [
    "ArrayLike",
    "AxisError",
    "as_stream",
    "axes_of",
    "axis_of",
    "broadcast_shapes",
    "pair",
    "shape_text",
    "to_array",
]


class AxisError(ValueError, IndexError):
    """There is no such axis. Releases of MLX differ in which of the two they raise."""


class ArrayLike:
    """An object with ``__mlx_array__``, a method that returns an :class:`array`.

    Args:
        arg: the object.
    """

    __slots__ = ("arg",)

    def __init__(self, arg: object, /) -> None:
        self.arg = arg

    def __mlx_array__(self) -> array:
        return to_array(self.arg)


def shape_text(shape: Sequence[int]) -> str:
    """Write a shape as MLX does: ``(2,3)``."""
    return "(" + ",".join(map(str, shape)) + ")"


def as_stream(stream: Stream | Device | DeviceType | Any | None) -> Stream:
    """Return the stream that an operation is recorded on."""
    if stream is None:
        return current.state.stream
    if isinstance(stream, Stream):
        return stream
    if isinstance(stream, DeviceType):
        stream = Device(stream)
    if isinstance(stream, Device):
        return current.state.streams.get(stream) or default_stream_of(stream)
    resolved = getattr(stream, "resolve", None)  # a stream of each thread
    if resolved is not None:
        return resolved()  # type: ignore[no-any-return]
    raise TypeError(f"[stream] expected a Stream, a Device or a device type, got {type(stream).__name__}.")


def weak_dtype(value: Any, other: Dtype) -> Dtype:
    """Return the type that a number takes beside an array of type ``other``: the array's, if it can hold its kind.

    Raises:
        ValueError: an integer does not fit into an integer type of less than 64 bits.
    """
    if value is True or value is False:
        return other
    if isinstance(value, int):
        if other is dtypes.bool_:
            return dtypes.int32
        if not other.is_inexact and other.size < 8:
            low, high = dtypes.limits(other)
            if not low <= value <= high:
                raise ValueError(f"Converting {value} to {other.name} would result in overflow.")
        elif not other.is_inexact:
            default_dtype(value)  # it raises for what does not fit into 64 bits
        return other
    if isinstance(value, float):
        return other if other.is_inexact else dtypes.float32
    return dtypes.complex64


def to_array(value: Any, like: Dtype | None = None) -> array:
    """Return an array of a number or of anything that is an array; lists are not.

    Args:
        value: an array, a number, a numpy or torch array, an object with ``__mlx_array__``.
        like: type of the other operand; a number takes it where it can, an array of another library always.

    Raises:
        ValueError: ``value`` is none of these.
        TypeError: ``value`` is None.
    """
    if type(value) is array:
        return value
    if isinstance(value, bool | int | float | complex):
        return constant(value, default_dtype(value) if like is None else weak_dtype(value, like))
    if isinstance(value, array):
        return value
    if isinstance(value, list | tuple | str):
        raise ValueError(  # noqa: TRY004  (MLX's)
            f"Invalid type {type(value).__name__} received in array initialization: an operand is an array or a number."
        )
    if value is None:
        raise TypeError("[array] expected an array or a number, got None.")
    if hasattr(value, "__mlx_array__"):
        return value.__mlx_array__()  # type: ignore[no-any-return]
    return array(value, like)


def pair(a: Any, b: Any) -> tuple[array, array]:
    """Return two operands as arrays; a Python number takes the type of the other."""
    if type(a) is array:
        return a, (b if type(b) is array else to_array(b, a._n.dtype))
    if type(b) is array:
        return to_array(a, b._n.dtype), b
    a = to_array(a)
    return a, to_array(b, a._n.dtype)


def axis_of(op: str, axis: int, ndim: int) -> int:
    """Return a valid, non-negative axis.

    Raises:
        AxisError: there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise AxisError(f"[{op}] Invalid axis {axis} for array with {ndim} dimensions.")
    return axis + ndim if axis < 0 else axis


def axes_of(op: str, axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return valid, sorted, non-negative axes; all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    found = sorted(axis_of(op, one, ndim) for one in given)
    if len(set(found)) != len(found):
        raise ValueError(f"[{op}] Received duplicate axes: {list(given)}.")
    return tuple(found)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in which shapes meet.

    Raises:
        ValueError: two sizes of an axis differ and neither is 1.
    """
    first, *rest = shapes
    result = tuple(first)
    for shape in rest:
        if tuple(shape) == result:
            continue
        longer, shorter = (result, tuple(shape)) if len(result) >= len(shape) else (tuple(shape), result)
        skip = len(longer) - len(shorter)
        merged = list(longer)
        for i, size in enumerate(shorter, skip):
            if merged[i] == 1:
                merged[i] = size
            elif size not in (1, merged[i]):
                raise ValueError(
                    f"[broadcast_shapes] Shapes {shape_text(result)} and {shape_text(shape)} cannot be broadcast."
                )
        result = tuple(merged)
    return result
