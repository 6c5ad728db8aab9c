"""Make attention_decode.toml with MLX: ``pip install mlx[cpu]==0.32.4`` and ``python attention_decode.py``."""

# ruff: noqa: T201  a script that prints where it wrote
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

EVERY = 5


def pattern(*shape: int, step: float = 0.37) -> Any:
    """Return numbers that the test makes as well."""
    return mx.array(np.sin(np.arange(math.prod(shape)) * step).astype(np.float32).reshape(shape))


def words(codes: Any, bits: int) -> Any:
    """Pack codes into 32-bit words, the first in the lowest bits."""
    each = 32 // bits
    parts = codes.reshape(*codes.shape[:-1], -1, each).astype(np.uint64) << (np.arange(each, dtype=np.uint64) * bits)
    return mx.array(parts.sum(-1).astype(np.uint32))


def quantized(bits: int) -> Any:
    """Attend to a quantized cache through quantized_matmul, as mlx-lm does."""
    codes = (np.arange(2 * 9 * 64) * 7 % (1 << bits)).reshape(1, 2, 9, 64)
    cache = (words(codes, bits), pattern(1, 2, 9, 2) * 0.1 / (1 << bits) * 16, pattern(1, 2, 9, 2, step=0.7))
    queries = (pattern(1, 4, 3, 64) * 0.2).reshape(1, 2, 2, 3, 64)
    rows = [mx.expand_dims(part, -3) for part in cache]
    scores = mx.quantized_matmul(queries, *rows, transpose=True, group_size=32, bits=bits)
    seen = mx.arange(6, 9)[:, None] >= mx.arange(9)[None]
    scores = mx.softmax(mx.where(seen, scores, mx.finfo(scores.dtype).min), axis=-1, precise=True)
    return mx.quantized_matmul(scores, *rows, transpose=False, group_size=32, bits=bits).reshape(1, 4, 3, 64)


def main() -> None:
    """Write the golden values."""
    mx.set_default_device(mx.cpu)
    q, k, v = pattern(1, 4, 2, 32), pattern(1, 2, 11, 32, step=0.61), pattern(1, 2, 11, 32, step=1.13)
    mask = mx.array([[n % 3 > 0 for n in range(11)], [False] * 11])
    options = {
        "plain": {},
        "causal": {"mask": "causal"},
        "boolean": {"mask": mask},
        "additive": {"mask": pattern(2, 11, step=0.9)},
        "sinks": {"sinks": mx.array([0.5, -1.0, 2.0, 0.0]), "mask": mask},
    }
    lines = [f"# MLX {mx.__version__} on the CPU; made by attention_decode.py.", f"every = {EVERY}", "", "[decode]"]
    for name, extra in options.items():
        out = np.array(mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, **extra)).ravel()[::EVERY]
        lines.append(f"{name} = [{', '.join(f'{value:.8g}' for value in out)}]")
    lines += ["", "[quantized]"]
    for bits in (4, 8):
        lines.append(f"{bits} = [{', '.join(f'{value:.8g}' for value in np.array(quantized(bits)).ravel()[::EVERY])}]")
    path = Path(__file__).with_suffix(".toml")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
