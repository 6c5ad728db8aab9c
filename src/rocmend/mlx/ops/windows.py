"""Window functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rocmend.mlx.dtypes import float32
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.array import array

__all__ = ["bartlett", "blackman", "hamming", "hanning"]


def _points(M: int, stream: Any) -> tuple[array | None, array]:
    """Return a window of no more than one point, or None, and the numbers of its points."""
    if M <= 1:
        return ops.ones((max(M, 0),), float32, stream=stream), ops.zeros((0,))
    return None, ops.arange(0, M, dtype=float32, stream=stream)


def bartlett(M: int, *, stream: Any = None) -> array:
    """Return the Bartlett window: ``1 - abs(2 n / (M - 1) - 1)``.

    Args:
        M: number of points.
        stream: where to compute it.

    Returns:
        float32, of ``M`` elements.
    """
    short, n = _points(M, stream)
    if short is not None:
        return short
    term = ops.subtract(ops.multiply(2.0 / (M - 1), n, stream), 1.0, stream)
    return ops.subtract(1.0, ops.abs(term, stream=stream), stream)  # type: ignore[no-any-return]


def hanning(M: int, *, stream: Any = None) -> array:
    """Return the Hann window: ``sin(pi n / (M - 1)) ** 2``.

    Args:
        M: number of points.
        stream: where to compute it.

    Returns:
        float32, of ``M`` elements.
    """
    short, n = _points(M, stream)
    if short is not None:
        return short
    angle = ops.multiply(math.pi / (M - 1), n, stream)
    return ops.square(ops.sin(angle, stream=stream), stream=stream)  # type: ignore[no-any-return]


def hamming(M: int, *, stream: Any = None) -> array:
    """Return the Hamming window: ``0.54 - 0.46 cos(2 pi n / (M - 1))``.

    Args:
        M: number of points.
        stream: where to compute it.

    Returns:
        float32, of ``M`` elements.
    """
    short, n = _points(M, stream)
    if short is not None:
        return short
    wave = ops.cos(ops.multiply(2.0 * math.pi / (M - 1), n, stream), stream=stream)
    return ops.subtract(0.54, ops.multiply(0.46, wave, stream), stream)  # type: ignore[no-any-return]


def blackman(M: int, *, stream: Any = None) -> array:
    """Return the Blackman window: ``0.42 - 0.5 cos(x) + 0.08 cos(2 x)`` with ``x = 2 pi n / (M - 1)``.

    Args:
        M: number of points.
        stream: where to compute it.

    Returns:
        float32, of ``M`` elements.
    """
    short, n = _points(M, stream)
    if short is not None:
        return short
    wave = ops.cos(ops.multiply(2.0 * math.pi / (M - 1), n, stream), stream=stream)
    # 0.08 cos(2 x) = 0.16 cos(x) ** 2 - 0.08
    square = ops.multiply(0.16, ops.square(wave, stream=stream), stream)
    return ops.add(ops.subtract(0.34, ops.multiply(0.5, wave, stream), stream), square, stream)  # type: ignore[no-any-return]
