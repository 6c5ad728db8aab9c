"""Write ``order.json``: what MLX 0.32.4 gives on the CPU.

Run with ``pip install mlx==0.32.4 mlx-cpu==0.32.4``: ``python tests/kernels/golden/order.py``.
Floats are kept as the hexadecimal of their bits (``view``), so that NaN and -0.0 stay.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mlx.core as mx

HERE = Path(__file__).parent
ODD = [2.0, 1.0, float("nan"), -0.0, 0.0, float("-inf"), float("inf"), 1.0, float("nan"), 0.0, -0.0, -1.0, 1e-42, -3.5]
TYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}
BITS = {"float32": mx.uint32, "float16": mx.uint16, "bfloat16": mx.uint16}


def bits(x: mx.array) -> Any:
    """Return the bits of floats, other numbers as they are."""
    name = str(x.dtype).split(".")[-1]
    return x.view(BITS[name]).tolist() if name in BITS else x.tolist()


def main() -> None:
    """Write the file."""
    found: dict[str, Any] = {"sort": {}, "scan": {}, "random": {}}
    for name, dtype in TYPES.items():
        x = mx.array(ODD, dtype=mx.float32).astype(dtype)
        clean = mx.array([value for value in ODD if not math.isnan(value)], dtype=mx.float32).astype(dtype)
        found["sort"][name] = {
            "x": bits(x),
            "sort": bits(mx.sort(x)),
            "argsort": mx.argsort(x).tolist(),
            "argmax": mx.argmax(x).item(),
            "argmin": mx.argmin(x).item(),
            "argmax-clean": mx.argmax(clean).item(),
            "argmin-clean": mx.argmin(clean).item(),
            "topk": sorted(bits(mx.topk(x, 4))),
        }
        rows = {"x": bits(clean)}
        for function in ("cummax", "cummin"):
            for reverse in (False, True):
                for inclusive in (False, True):
                    out = getattr(mx, function)(clean, reverse=reverse, inclusive=inclusive)
                    rows[f"{function}-{reverse}-{inclusive}"] = bits(out)
        found["scan"][name] = rows
    key = mx.random.key(12345678901234)
    found["random"]["key"] = key.tolist()
    for count in (1, 2, 3, 5):
        found["random"][f"split-{count}"] = mx.random.split(key, count).tolist()
    for name, dtype in TYPES.items():
        for size in (1, 2, 7, 8):
            out = mx.random.uniform(-3.0, 7.0, shape=[size], dtype=dtype, key=key)
            found["random"][f"uniform-{name}-{size}"] = bits(out)
        found["random"][f"normal-{name}"] = mx.random.normal([9], dtype, 1.5, 2.0, key=key).tolist()
        found["random"][f"gumbel-{name}"] = mx.random.gumbel([9], dtype, key=key).tolist()
    found["random"]["bernoulli"] = mx.random.bernoulli(0.4, [21], key=key).tolist()
    found["random"]["categorical"] = mx.random.categorical(mx.zeros((4, 10)), key=key).tolist()
    (HERE / "order.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
