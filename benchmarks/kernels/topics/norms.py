"""Normalisations: the model for other topics."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from benchmarks.kernels.bench import Bench, compiled
from torch.nn import functional as F  # noqa: N812  torch's documentation calls it F

from rocmend.kernels.suite import Call, Maker

EPS = 1e-5
SIZES = ((8, 4096), (2048, 4096), (16384, 4096), (16384, 8192), (4096, 16384))


def _torch(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def benches() -> Iterator[Bench]:
    """Yield what is measured."""
    for dtype in ("bfloat16", "float16", "float32"):
        width = 4 if dtype == "float32" else 2
        for rows, columns in SIZES if dtype == "bfloat16" else SIZES[2:3]:

            def make(m: Maker, rows: int = rows, columns: int = columns, dtype: str = dtype) -> Call:
                return Call((m.normal(rows, columns, dtype=dtype), m.normal(columns, dtype=dtype), EPS))

            yield Bench(
                op="rms_norm",
                name=f"{dtype}-{rows}x{columns}",
                make=make,
                dtype=dtype,
                bytes=(2.0 * rows * columns + columns) * width,
                peers={"torch": _torch, "torch.compile": compiled(_torch)},
                mlx=(
                    "benchmarks.kernels.topics.norms_mlx:rms_norm",
                    {"rows": rows, "columns": columns, "dtype": dtype, "eps": EPS},
                ),
            )
