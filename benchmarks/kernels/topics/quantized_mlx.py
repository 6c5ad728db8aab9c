"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx


def quantized_matmul(
    shape: tuple[int, int, int], form: tuple[str, int, int], dtype: str, sets: int
) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""
    rows, n, k = shape
    mode, bits, group = form

    def one() -> Callable[[], Any]:
        x = mx.random.normal((rows, k)).astype(getattr(mx, dtype))
        w = mx.quantize(mx.random.normal((n, k)).astype(getattr(mx, dtype)), group_size=group, bits=bits, mode=mode)
        mx.eval(x, *w)
        return lambda: mx.quantized_matmul(x, *w, group_size=group, bits=bits, mode=mode)

    return [one() for _ in range(sets)]
