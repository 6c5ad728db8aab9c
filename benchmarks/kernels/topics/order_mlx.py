"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx


def sort(rows: int, columns: int, dtype: str, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""

    def one() -> Callable[[], Any]:
        x = mx.random.normal((rows, columns)).astype(getattr(mx, dtype))
        mx.eval(x)
        return lambda: mx.sort(x, -1)

    return [one() for _ in range(sets)]
