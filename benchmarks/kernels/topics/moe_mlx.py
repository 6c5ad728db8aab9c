"""The same in MLX; imported only in a child process that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx


def gather_qmm(
    tokens: int, mode: str, bits: int, group_size: int, sizes: tuple[int, int, int, int], down: bool, sets: int
) -> list[Callable[[], Any]]:
    """Return a call for each set of data.

    Args:
        tokens: Each of which chooses experts.
        mode: Of the weights.
        bits: Likewise.
        group_size: Likewise.
        sizes: Experts, how many of them each token chooses, width of x, width of the output.
        down: Whether each pair of a token and an expert has a row of x of its own.
        sets: How many.
    """
    experts, top, hidden, inner = sizes
    form = {"mode": mode, "bits": bits, "group_size": group_size}

    def one() -> Callable[[], Any]:
        x = mx.random.normal((tokens, top if down else 1, 1, hidden)).astype(mx.bfloat16)
        parts = mx.quantize(mx.random.normal((experts, inner, hidden)).astype(mx.bfloat16), **form)
        chosen = mx.random.randint(0, experts, (tokens, top)).astype(mx.uint32)
        mx.eval(x, *parts, chosen)
        return lambda: mx.gather_qmm(x, *parts, rhs_indices=chosen, **form)

    return [one() for _ in range(sets)]
