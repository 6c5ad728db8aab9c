"""What MLX computed on its CPU back end, made by ``golden/norms.py``."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch

DTYPES = ("float32", "float16", "bfloat16")


@functools.cache
def _all() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "golden" / "norms.npz") as kept:
        return {name: kept[name] for name in kept.files}


def golden(dtype: str, name: str) -> torch.Tensor:
    """Return an input or an output of MLX."""
    values = _all()[f"{dtype}/{name}"]
    if values.dtype == np.uint16:
        return torch.from_numpy(values.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(values.copy())


def assert_as_mlx(out: torch.Tensor, wanted: torch.Tensor, *, ulps: float) -> None:
    """Compare in units in the last place of the type; NaN is NaN, infinities are themselves."""
    assert out.dtype == wanted.dtype
    assert torch.equal(out.isnan(), wanted.isnan())
    finite = wanted.isfinite()
    assert torch.equal(out[~finite].nan_to_num(), wanted[~finite].nan_to_num())
    eps = torch.finfo(out.dtype).eps
    scale = wanted[finite].double().abs().clamp_min(torch.finfo(out.dtype).tiny)
    error = (out[finite].double() - wanted[finite].double()).abs() / (torch.exp2(scale.log2().floor()) * eps)
    worst = float(error.max()) if error.numel() else 0.0
    assert worst <= ulps, worst
