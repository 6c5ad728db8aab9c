"""The frequencies of a transform, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, to_array
from rocmend.mlx.array import array
from rocmend.mlx.registry import ops

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _check(op: str, n: int, d: float) -> None:
    if n <= 0:
        raise ValueError(f"[{op}] `n` must be greater than 0, got {n}.")
    if d == 0:
        raise ValueError(f"[{op}] `d` must be non-zero.")


def fftfreq(n: int, d: float = 1.0, stream: Any = None) -> array:
    """Return the frequencies of a transform of n samples: ``[0, 1, …, -2, -1] / (n · d)``.

    Args:
        n: samples.
        d: time between two.
        stream: where it is computed.

    Returns:
        ``[n]`` float32.

    Raises:
        ValueError: n is not positive, or d is 0.
    """
    _check("fftfreq", n, d)
    half = (n + 1) // 2
    places = [
        ops.arange(0, half, dtype=dtypes.float32, stream=stream),
        ops.arange(half - n, 0, dtype=dtypes.float32, stream=stream),
    ]
    return ops.multiply(ops.concatenate(places, 0, stream=stream), 1.0 / (n * d), stream=stream)  # type: ignore[no-any-return]


def rfftfreq(n: int, d: float = 1.0, stream: Any = None) -> array:
    """Return the frequencies of a real transform of n samples: ``[0, 1, …, n // 2] / (n · d)``.

    Args:
        n: samples.
        d: time between two.
        stream: where it is computed.

    Returns:
        ``[n // 2 + 1]`` float32.

    Raises:
        ValueError: n is not positive, or d is 0.
    """
    _check("rfftfreq", n, d)
    places = ops.arange(0, n // 2 + 1, dtype=dtypes.float32, stream=stream)
    return ops.multiply(places, 1.0 / (n * d), stream=stream)  # type: ignore[no-any-return]


def _rolled(op: str, a: Any, axes: int | Sequence[int] | None, sign: int, stream: Any) -> array:
    a = to_array(a)
    ndim = len(a.shape)
    given = range(ndim) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    shifts: dict[int, int] = {}
    for axis in given:
        if not -ndim <= axis < ndim:
            raise AxisError(f"[{op}] Invalid axis {axis} for array with {ndim} dimensions.")
        place = axis % ndim
        shifts[place] = shifts.get(place, 0) + sign * (a.shape[place] // 2)
    if not shifts:
        return a  # type: ignore[no-any-return]
    return ops.roll(a, list(shifts.values()), list(shifts), stream=stream)  # type: ignore[no-any-return]


def fftshift(a: array, axes: int | Sequence[int] | None = None, stream: Any = None) -> array:
    """Move frequency 0 to the middle.

    Args:
        a: any shape.
        axes: along which; None for all.
        stream: where it is computed.

    Returns:
        The shape and type of a.

    Raises:
        IndexError: there is no such axis.
    """
    return _rolled("fftshift", a, axes, 1, stream)


def ifftshift(a: array, axes: int | Sequence[int] | None = None, stream: Any = None) -> array:
    """Move frequency 0 from the middle to the front: the inverse of ``fftshift``.

    Args:
        a: any shape.
        axes: along which; None for all.
        stream: where it is computed.

    Returns:
        The shape and type of a.

    Raises:
        IndexError: there is no such axis.
    """
    return _rolled("ifftshift", a, axes, -1, stream)
