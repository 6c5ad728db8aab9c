"""Make quantized.npz with real MLX: ``pip install 'mlx[cpu]==0.32.4' && python quantized.py``."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np

FORMATS = [("affine", bits, group) for bits in (1, 2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
FORMATS += [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
DTYPES = ("float32", "float16", "bfloat16")


def plain(array: mx.array) -> np.ndarray:
    """Return an array that NumPy can hold; bfloat16 as float32."""
    return np.array(array.astype(mx.float32) if array.dtype == mx.bfloat16 else array)


def quantized(out: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Quantize and dequantize in every format."""
    w = (rng.standard_normal((5, 128)) * np.exp(rng.uniform(-6, 6, (5, 1)))).astype(np.float32)
    w[0, :64], w[1], w[2] = 0, np.abs(w[1]), -np.abs(w[2])
    w[3, :16] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, -0.25, -0.75, -1.25, -1.75, -2.5, -3.5, -5, -0.0]
    w[3, 16:] = 0
    w = np.array(mx.array(w).astype(mx.bfloat16).astype(mx.float32)).astype(np.float16).astype(np.float32)
    out["w"] = w
    for index, (mode, bits, group) in enumerate(FORMATS):
        dtype = DTYPES[index % 3]
        form = {"mode": mode, "bits": bits, "group_size": group}
        parts = mx.quantize(mx.array(w).astype(getattr(mx, dtype)), **form)
        values = mx.dequantize(*parts, **form, dtype=getattr(mx, dtype))
        for name, part in zip(("words", "scales", "biases"), parts, strict=False):
            out[f"{mode}-{bits}-{group}-{dtype}-{name}"] = plain(part)
        out[f"{mode}-{bits}-{group}-{dtype}-values"] = plain(values)[4:, :48]
    whole = mx.array(3.7)
    parts = mx.quantize(mx.array(w), mode="nvfp4", global_scale=whole)
    out["global-words"], out["global-scales"] = plain(parts[0]), plain(parts[1])
    values = mx.dequantize(*parts, mode="nvfp4", global_scale=whole, dtype=mx.float32)
    out["global-values"] = plain(values)[4:, :48]


def gathered(out: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Multiply with chosen matrices: default and given indices, sorted ones, both ways round."""
    x = rng.integers(-99, 99, (4, 2, 64)).astype(np.float32) / 64
    w = rng.integers(-99, 99, (3, 6, 64)).astype(np.float32) / 128
    turned = rng.integers(-99, 99, (3, 12, 64)).astype(np.float32) / 64
    lhs, rhs = np.array([[3, 0], [1, 1]], np.uint32), np.array([[2, 0], [2, 1]], np.uint32)
    ascending = np.array([0, 0, 2, 2], np.uint32)
    out |= {"x": x, "experts": w, "turned": turned, "lhs": lhs, "rhs": rhs, "ascending": ascending}
    for mode in ("affine", "mxfp4", "mxfp8", "nvfp4"):
        parts = mx.quantize(mx.array(w), mode=mode)
        named = {"mode": mode}
        given = mx.array(x)
        out[f"gather-{mode}"] = plain(
            mx.gather_qmm(given, *parts, lhs_indices=mx.array(lhs), rhs_indices=mx.array(rhs), **named)
        )
        out[f"gather-{mode}-sorted"] = plain(
            mx.gather_qmm(given, *parts, rhs_indices=mx.array(ascending), sorted_indices=True, **named)
        )
        tall = mx.array(x[:, None])
        out[f"gather-{mode}-default"] = plain(mx.gather_qmm(tall, *parts, rhs_indices=mx.array(rhs[:1]), **named))
        parts = mx.quantize(mx.array(turned), mode=mode)
        out[f"gather-{mode}-turned"] = plain(
            mx.gather_qmm(given[..., :12], *parts, rhs_indices=mx.array(ascending), transpose=False, **named)
        )
    out["mm"] = plain(
        mx.gather_mm(mx.array(x[..., :12]), mx.array(turned), lhs_indices=mx.array(lhs), rhs_indices=mx.array(rhs))
    )


if __name__ == "__main__":
    found: dict[str, np.ndarray] = {}
    generator = np.random.default_rng(7)
    quantized(found, generator)
    gathered(found, generator)
    np.savez_compressed(Path(__file__).with_suffix(".npz"), **found)  # type: ignore[arg-type]  # the names are arrays, none is allow_pickle
