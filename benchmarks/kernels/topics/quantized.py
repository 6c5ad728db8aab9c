"""Matrix products with quantized weights: one row of x, a few, many."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from benchmarks.kernels.bench import Bench, Goal, Peer

from rocmend.kernels.common.formats import Format
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.suite import Call, Maker

AFFINE = Format("affine", 4, 64)
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


def _name(rows: int, n: int, k: int, form: Format, dtype: str, prefer: str = "") -> str:
    mode, bits, group = form
    return f"{dtype}-{mode}-b{bits}g{group}-{rows}x{k}-{n}{'-' + prefer if prefer else ''}"


def _goals(rows: int, n: int, k: int, form: Format, dtype: str) -> tuple[Goal, ...]:
    if (n, k) not in SHAPES or form.mode != "affine" or form.group_size != 64 or dtype != "bfloat16":
        return ()
    if form.bits == 8:
        return (("of_floor", 0.75),) if rows == 1 else ()
    if form.bits != 4:
        return ()
    if rows == 1:
        return (("of_floor", 0.6),)
    if rows == 8:
        return ((f"times:{_name(1, n, k, form, dtype)}", 1.15),)
    return (("tflops", 400.0),) if rows in {512, 2048} else ()


def _bench(
    rows: int, n: int, k: int, form: Format = AFFINE, dtype: str = "bfloat16", *, prefer: str = "", rank: int = 2
) -> Bench:
    mode, bits, group = form

    def make(m: Maker) -> Call:
        x = m.normal(rows, k, dtype=dtype)
        return Call((x, *_parts(m, n, k, dtype, form), True, group, bits, mode))

    def dense(call: Call) -> Call:
        """Return x and unquantized weights of the same shape."""
        x = call.args[0]
        return Call((x, torch.randn(n, k, dtype=x.dtype, device=x.device).mul_(k**-0.5)))

    cost = OP.cost(Problem(dtype, mode, bits, group, True, 1, rows, n, k))
    return Bench(
        op="quantized_matmul",
        name=_name(rows, n, k, form, dtype, prefer),
        make=make,
        dtype=dtype,
        bytes=cost.bytes,
        flops=cost.flops,
        rate=dtype,
        prefer=prefer,
        rank=rank,
        goals=_goals(rows, n, k, form, dtype),
        peers={"torch, dense": Peer(_dense, dense)} if mode == "affine" and bits == 4 and not prefer else {},
        mlx=None
        if prefer
        else (
            "benchmarks.kernels.topics.quantized_mlx:quantized_matmul",
            {"shape": [rows, n, k], "form": list(form), "dtype": dtype},
        ),
    )


def _dense(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return torch.matmul(x, weights.T)


def _tiny() -> Iterator[Bench]:
    for rows in (1, 8, 40):
        yield _bench(rows, 48, 128)
    yield _bench(40, 48, 128, prefer="triton")
    yield _bench(1, 48, 128, Format("affine", 8, 64))
    yield _bench(2, 48, 128, Format("affine", 3, 64))
    yield _bench(2, 48, 128, Format("mxfp4", 4, 32))
    yield _bench(1, 48, 128, Format("mxfp8", 8, 32))


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    if tiny:
        yield from _tiny()
        return
    for n, k in SHAPES:
        for rows in (1, 8, 512, 2048):
            yield _bench(rows, n, k, rank=1)
        for rows in (512, 2048):
            yield _bench(rows, n, k, prefer="triton", rank=1)
        yield _bench(1, n, k, Format("affine", 8, 64), rank=1)
        for rows in (2, 4, 16, 32, 128):
            yield _bench(rows, n, k)
        yield _bench(8, n, k, Format("affine", 8, 64))
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
