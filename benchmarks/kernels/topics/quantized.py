"""Matrix products with quantized weights: one row of x, a few, many."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from benchmarks.kernels.bench import Bench

from rocmend.kernels.common.formats import Format
from rocmend.kernels.ops.quantized_matmul import OP, Problem
from rocmend.kernels.suite import Call, Maker

AFFINE = Format("affine", 4, 64)
SETS = 8
"""Dense weights that are kept: more are those of earlier benches."""
SHAPES = ((14336, 4096), (28672, 8192))


def _parts(m: Maker, n: int, k: int, dtype: str, form: Format) -> tuple[object, ...]:
    mode, bits, group = form
    words = m.integers(-(2**31), 2**31, n, k * bits // 32)
    if mode == "affine":
        scale = 1.0 / (2**bits - 1)
        return (
            words,
            m.normal(n, k // group, dtype=dtype, scale=scale),
            m.normal(n, k // group, dtype=dtype, scale=0.5),
        )
    return words, m.integers(124, 128, n, k // group, dtype="uint8"), None


def _bench(rows: int, n: int, k: int, form: Format = AFFINE, dtype: str = "bfloat16") -> Bench:
    mode, bits, group = form

    def make(m: Maker) -> Call:
        x = m.normal(rows, k, dtype=dtype)
        return Call((x, *_parts(m, n, k, dtype, form), True, group, bits, mode))

    def dense(x: torch.Tensor, w: torch.Tensor, *_rest: object) -> torch.Tensor:
        # What unquantized weights of the same shape cost: bytes that are not initialised, but travel.
        weights = w.new_empty(0) if w.device.type == "meta" else _dense(w, n, k, x.dtype)
        return torch.matmul(x, weights.T)

    cost = OP.cost(Problem(dtype, mode, bits, group, True, 1, rows, n, k))
    return Bench(
        op="quantized_matmul",
        name=f"{dtype}-{mode}-b{bits}g{group}-{rows}x{k}-{n}",
        make=make,
        dtype=dtype,
        bytes=cost.bytes,
        flops=cost.flops,
        rate=dtype,
        peers={"torch, dense": dense} if mode == "affine" and bits == 4 else {},
        mlx=(
            "benchmarks.kernels.topics.quantized_mlx:quantized_matmul",
            {"shape": [rows, n, k], "form": list(form), "dtype": dtype},
        ),
    )


_kept: dict[tuple[int, int, torch.dtype, int], torch.Tensor] = {}


def _dense(w: torch.Tensor, n: int, k: int, dtype: torch.dtype) -> torch.Tensor:
    """Return dense weights that go with a set of words, made once."""
    key = (n, k, dtype, w.data_ptr())
    if key not in _kept:
        if len(_kept) > SETS:
            _kept.clear()
        _kept[key] = torch.ones(n, k, dtype=dtype, device=w.device)
    return _kept[key]


def benches() -> Iterator[Bench]:
    """Yield what is measured."""
    for n, k in SHAPES:
        for rows in (1, 8, 16, 32, 128, 512, 2048):
            yield _bench(rows, n, k)
        for rows in (1, 8):
            yield _bench(rows, n, k, Format("affine", 8, 64))
    n, k = SHAPES[0]
    for rows in (1, 4096):
        yield _bench(rows, 4096, k)
    for bits in (2, 3, 5, 6):
        for rows in (1, 32):
            yield _bench(rows, n, k, Format("affine", bits, 64))
    for group in (32, 128):
        yield _bench(1, n, k, Format("affine", 4, group))
    for rows in (1, 32, 512):
        yield _bench(rows, n, k, Format("mxfp4", 4, 32))
    yield _bench(1, n, k, Format("mxfp8", 8, 32))
    yield _bench(1, n, k, dtype="float16")
