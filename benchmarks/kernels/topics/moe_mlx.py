"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

EXPERTS, TOP, HIDDEN, INNER = 128, 8, 2048, 768


def gather_qmm(tokens: int, mode: str, bits: int, group_size: int, sets: int) -> list[Callable[[], Any]]:
    """Return a call for each set of data."""
    form = {"mode": mode, "bits": bits, "group_size": group_size}

    def one() -> Callable[[], Any]:
        x = mx.random.normal((tokens, 1, 1, HIDDEN)).astype(mx.bfloat16)
        parts = mx.quantize(mx.random.normal((EXPERTS, INNER, HIDDEN)).astype(mx.bfloat16), **form)
        chosen = mx.random.randint(0, EXPERTS, (tokens, TOP)).astype(mx.uint32)
        mx.eval(x, *parts, chosen)
        return lambda: mx.gather_qmm(x, *parts, rhs_indices=chosen, **form)

    return [one() for _ in range(sets)]
