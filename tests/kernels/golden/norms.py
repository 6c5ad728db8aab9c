"""Make norms.npz with MLX: ``pip install mlx==0.32.4 mlx-cpu==0.32.4; python norms.py`` (on its CPU back end)."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np

TYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


def plain(x: mx.array) -> np.ndarray:
    """Return an array that numpy can hold: bf16 as its raw bits."""
    return np.array(x.view(mx.uint16) if x.dtype == mx.bfloat16 else x)


def main() -> None:
    """Write inputs and outputs."""
    rng = np.random.default_rng(4)
    kept: dict[str, np.ndarray] = {}
    base = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in (("x", (6, 48)), ("w", (48,)))}
    base["b"] = rng.standard_normal(48).astype(np.float32)
    heads = rng.standard_normal((2, 2, 3, 16)).astype(np.float32)
    odd = np.array([[-np.inf] * 3, [np.inf, 1, -np.inf], [-np.inf, 2, -np.inf], [0, -0.0, 0]], np.float32)
    for name, dtype in TYPES.items():
        x, w, b = (mx.array(base[one]).astype(dtype) for one in "xwb")
        h, o = mx.array(heads).astype(dtype), mx.array(odd).astype(dtype)
        found = {
            "x": x, "w": w, "b": b, "h": h, "o": o,
            "rms": mx.fast.rms_norm(x, w, 1e-5), "rms_plain": mx.fast.rms_norm(x, None, 1e-5),
            "layer": mx.fast.layer_norm(x, w, b, 1e-5), "layer_plain": mx.fast.layer_norm(x, None, None, 1e-5),
            "softmax": mx.softmax(x, axis=-1, precise=True), "softmax_axis": mx.softmax(h, axis=(1, 2), precise=True),
            "softmax_odd": mx.softmax(o, axis=-1, precise=True),
            "lse": mx.logsumexp(x, axis=-1), "lse_axis": mx.logsumexp(h, axis=(0, 2)),
            "lse_odd": mx.logsumexp(o, axis=-1),
        }  # fmt: skip
        for traditional in (False, True):
            mark = "_traditional" if traditional else ""
            found[f"rope{mark}"] = mx.fast.rope(
                h, 12, traditional=traditional, base=100.0, scale=0.5, offset=mx.array([3, 50])
            )
            freqs = mx.array([1.5**one for one in range(8)])
            found[f"rope_freqs{mark}"] = mx.fast.rope(
                h, 16, traditional=traditional, base=None, scale=1.0, offset=7, freqs=freqs
            )
        kept |= {f"{name}/{key}": plain(value) for key, value in found.items()}
        rms = mx.grad(lambda x, w: (mx.fast.rms_norm(x, w, 1e-5) * mx.cos(base_like(x))).sum(), argnums=(0, 1))(x, w)
        if name == "float32":
            kept |= {f"{name}/rms_dx": plain(rms[0]), f"{name}/rms_dw": plain(rms[1])}
    np.savez_compressed(Path(__file__).with_suffix(".npz"), allow_pickle=False, **kept)


def base_like(x: mx.array) -> mx.array:
    """Return numbers that do not depend on the values of x."""
    return mx.arange(x.size).reshape(x.shape).astype(mx.float32)


if __name__ == "__main__":
    main()
