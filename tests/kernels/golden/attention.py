"""Values of MLX 0.32.4 on the CPU: ``pip install mlx==0.32.4 mlx-cpu==0.32.4 numpy``, then ``python attention.py``.

They are kept in ``attention.npz``; ``inputs`` makes the same arguments for the test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("plain", "causal", "short", "boolean", "blind", "blind-sinks", "additive", "lowest", "sinks", "nothing")


def inputs(name: str) -> dict[str, Any]:
    """Return q, k, v, scale, mask and sinks of a case, as NumPy arrays."""
    random = np.random.default_rng(NAMES.index(name))
    keys = {"short": 11, "nothing": 0}.get(name, 24)
    q, k, v = (random.normal(size=(1, heads, length, 16)).astype(np.float32)
               for heads, length in ((4, 19), (2, keys), (2, keys)))  # fmt: skip
    seen = random.random((19, keys)) > 0.4
    seen[3] = not name.startswith("blind")
    given: dict[str, Any] = {"q": q, "k": k, "v": v, "scale": 0.25, "mask": None, "sinks": None}
    if name in ("causal", "short"):
        given["mask"] = "causal"
    if name.startswith(("boolean", "blind")):
        given["mask"] = seen
    if name == "additive":
        given["mask"] = random.normal(size=(4, 1, keys)).astype(np.float32)
    if name == "lowest":
        given["mask"] = np.where(seen & (np.arange(19) != 5)[:, None], 0.0, np.finfo(np.float32).min).astype(np.float32)
    if name.endswith("sinks"):
        given["sinks"] = random.normal(size=4).astype(np.float32)
    return given


def main() -> None:
    """Compute and keep the values."""
    import mlx.core as mx

    found: dict[str, Any] = {}
    for name in NAMES:
        given = {
            key: mx.array(value) if isinstance(value, np.ndarray) else value for key, value in inputs(name).items()
        }
        q, k, v = (given.pop(key) for key in ("q", "k", "v"))
        found[name] = np.array(mx.fast.scaled_dot_product_attention(q, k, v, **given))
    np.savez_compressed(Path(__file__).with_suffix(".npz"), **found)


if __name__ == "__main__":
    main()
