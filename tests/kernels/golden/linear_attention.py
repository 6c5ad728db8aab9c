"""Make linear_attention.toml with mlx-lm's own steps: ``pip install mlx[cpu]==0.32.4 mlx-lm==0.32.0``, then run it."""

# ruff: noqa: T201  a script that prints where it wrote
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.gated_delta import gated_delta_ops
from mlx_lm.models.rwkv7 import _wkv7_step_ops
from mlx_lm.models.ssm import ssm_attn

from mlx import nn

EVERY = 7


def pattern(*shape: int, step: float = 0.37) -> Any:
    """Return numbers that the test makes as well."""
    return mx.array(np.sin(np.arange(math.prod(shape)) * step).astype(np.float32).reshape(shape))


def main() -> None:
    """Write the golden values."""
    mx.set_default_device(mx.cpu)
    found = {}
    q, k, v = pattern(1, 30, 1, 16) * 0.2, pattern(1, 30, 1, 16, step=0.61) * 0.3, pattern(1, 30, 2, 8, step=1.1)
    gates = (mx.sigmoid(pattern(1, 30, 2, step=0.5)), mx.sigmoid(pattern(1, 30, 2, step=0.8)))
    found["gated_delta"] = gated_delta_ops(q, k, v, *gates, pattern(1, 2, 8, 16, step=0.23))
    x, dt = pattern(1, 30, 2, 8), pattern(1, 30, 2, step=0.5)
    b, c = pattern(1, 30, 1, 16, step=0.61), pattern(1, 30, 1, 16, step=0.9)
    a_log, d, bias = pattern(2, step=0.4), pattern(2, step=0.7), pattern(2, step=1.3)
    found["ssd"] = ssm_attn(x, a_log, b, c, d, dt, bias, pattern(1, 2, 8, 16, step=0.23))
    rows = [pattern(1, 5, 2, 16, step=0.3 + 0.1 * n) * 0.5 for n in range(6)]
    state, ys = pattern(1, 2, 16, 16, step=0.23), []
    for t in range(5):
        y, state = _wkv7_step_ops(*(row[:, t] for row in rows), state)
        ys.append(y[..., 0])
    found["wkv7"] = (mx.stack(ys, 1), state)
    conv = nn.Conv1d(6, 6, 4, groups=6, bias=True)
    conv.weight, conv.bias = pattern(6, 4, step=0.7)[..., None], pattern(6, step=0.4)
    full = mx.concatenate([pattern(2, 3, 6, step=0.2), pattern(2, 9, 6)], axis=1)
    found["conv"] = (nn.silu(conv(full)), full[:, -3:])
    lines = [f"# MLX {mx.__version__} on the CPU; made by linear_attention.py.", f"every = {EVERY}", "", "[values]"]
    for name, parts in found.items():
        for kind, part in zip(("y", "state"), parts, strict=True):
            numbers = ", ".join(f"{value:.8e}" for value in np.array(part).ravel()[::EVERY])
            lines.append(f"{name}_{kind} = [{numbers}]")
    path = Path(__file__).with_suffix(".toml")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
