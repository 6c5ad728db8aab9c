"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx


def attention(shape: tuple[int, int, int, int, int, int], mask: str | None, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""
    batch, heads, kv_heads, queries, keys, dim = shape

    def one() -> Callable[[], Any]:
        q = mx.random.normal((batch, heads, queries, dim)).astype(mx.bfloat16)
        k, v = (mx.random.normal((batch, kv_heads, keys, dim)).astype(mx.bfloat16) for _ in range(2))
        mx.eval(q, k, v)
        return lambda: mx.fast.scaled_dot_product_attention(q, k, v, scale=dim**-0.5, mask=mask)

    return [one() for _ in range(sets)]
