"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx


def rms_norm(rows: int, columns: int, dtype: str, eps: float, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""

    def one() -> Callable[[], Any]:
        x = mx.random.normal((rows, columns)).astype(getattr(mx, dtype))
        weight = mx.random.normal((columns,)).astype(getattr(mx, dtype))
        mx.eval(x, weight)
        return lambda: mx.fast.rms_norm(x, weight, eps)

    return [one() for _ in range(sets)]


def softmax(rows: int, columns: int, dtype: str, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""

    def one() -> Callable[[], Any]:
        x = mx.random.normal((rows, columns)).astype(getattr(mx, dtype))
        mx.eval(x)
        return lambda: mx.softmax(x, -1)

    return [one() for _ in range(sets)]


def rope(shape: tuple[int, int, int, int], traditional: bool, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""

    def one() -> Callable[[], Any]:
        x = mx.random.normal(shape).astype(mx.bfloat16)
        mx.eval(x)
        return lambda: mx.fast.rope(
            x.swapaxes(1, 2), shape[-1], traditional=traditional, base=10000.0, scale=1.0, offset=5
        )

    return [one() for _ in range(sets)]
