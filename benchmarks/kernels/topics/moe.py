"""Mixtures of experts: gathered quantized products at the sizes of Qwen3-30B-A3B and Qwen3-235B-A22B (its decode).

Quantize and dequantize, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from benchmarks.kernels import reading
from benchmarks.kernels.bench import Bench, Peer

from rocmend.kernels.common.formats import format_of
from rocmend.kernels.ops.moe.gather_qmm import OP, Problem
from rocmend.kernels.ops.moe.gather_qmm.cases import matrices
from rocmend.kernels.suite import Call, Maker

EXPERTS, TOP = 128, 8
FORMATS = (("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32))
MATRIX = (14336, 4096)
TOKENS = (1, 2, 4, 8, 16, 32, 128, 512, 2048)
FEW = 16
LARGE_TOKENS = (1, 2, 4, 8)


class Size(NamedTuple):
    """A model, experts, of them chosen, hidden and inner width, rows and columns of a quantized matrix."""

    model: str
    experts: int
    top: int
    hidden: int
    inner: int
    matrix: tuple[int, int]


REAL = Size("qwen3-30b", EXPERTS, TOP, 2048, 768, MATRIX)
LARGE = Size("qwen3-235b", EXPERTS, TOP, 4096, 1536, MATRIX)
TINY = Size("tiny", 6, 2, 128, 48, (24, 128))
TINY_LARGE = Size("tiny-large", 5, 2, 192, 64, (24, 128))


def _gathered(tokens: int, form: tuple[str, int, int], size: Size, *, gated: bool = False, down: bool = False) -> Bench:
    """Name the gate of a layer, hidden to inner.

    Args:
        tokens: Each of which chooses ``top`` experts.
        form: Of the weights.
        size: Of the model.
        gated: Whether it is both projections and the gate between them.
        down: Whether it is the projection behind them instead, inner to hidden: each pair has a row of x of its own.
    """
    of = format_of("gather_qmm", *form)
    _, experts, top, hidden, inner, _ = size
    if down:
        hidden, inner = inner, hidden

    def make(m: Maker) -> Call:
        x = m.normal(tokens, top if down else 1, 1, hidden, dtype="bfloat16")
        shape = (experts, inner, hidden)
        named: dict[str, Any] = {
            "rhs_indices": m.integers(0, experts, tokens, top),
            "group_size": of.group_size,
            "bits": of.bits,
            "mode": of.mode,
        }
        first = matrices(m, of, "bfloat16", shape)
        if gated:
            return Call((x, first, matrices(m, of, "bfloat16", shape)), named)
        return Call((x, *first), named)

    # As many experts as random tokens choose, on average.
    chosen = round(experts * (1 - (1 - 1 / experts) ** (tokens * top)))
    cost = OP.cost(Problem("bfloat16", *of, True, gated, tokens * top, 1, inner, hidden, chosen))
    kind = "swiglu-" if gated else "down-" if down else ""
    return Bench(
        op="gather_qmm",
        name=f"{size.model}-{kind}{of.mode}{of.bits}-{tokens}x{top}of{experts}",
        make=make,
        dtype="bfloat16",
        bytes=cost.bytes,
        flops=cost.flops,
        function="gather_qmm_swiglu" if gated else None,
        reference="rocmend.kernels.ops.moe.gather_qmm.reference:gather_qmm_swiglu" if gated else None,
        rank=1 if form == FORMATS[0] and (tokens <= 16 or (tokens == 512 and not gated)) else 2,
        goals=(("of_floor", 0.6),)
        if tokens <= 16
        else (("of_peer:torch, dense", 0.4),)
        if tokens == 512 and not gated
        else (),
        peers=_peers(tokens, size, gated=gated),
        mlx=None
        if gated or form != FORMATS[0]
        else (
            "benchmarks.kernels.topics.moe_mlx:gather_qmm",
            {
                "tokens": tokens,
                "mode": of.mode,
                "bits": of.bits,
                "group_size": of.group_size,
                "sizes": [experts, top, hidden, inner],
                "down": down,
            },
        ),
    )


def _peers(tokens: int, size: Size, *, gated: bool) -> dict[str, Peer]:
    """Return a dense product for many rows; for few, the plain reading of what the indices name."""
    if tokens <= FEW:
        return {reading.NAME: Peer(reading.read, reading.arguments)}
    return {} if gated else {"torch, dense": Peer(torch.matmul, functools.partial(_dense, size=size))}


def _dense(call: Call, *, size: Size) -> Call:
    """Return the arguments of a dense product of as many rows: what a grouped one is measured against."""
    x = call.args[0]
    rows = x.reshape(-1, x.shape[-1]).repeat_interleave(size.top, 0)
    weights = torch.randn(size.hidden, size.inner, device=x.device, dtype=x.dtype)
    return Call((rows, weights.mul_(size.hidden**-0.5)))


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    size = TINY if tiny else REAL
    for tokens in (1, 20) if tiny else TOKENS:
        for form in FORMATS if tokens in {1, 512} else FORMATS[:1]:
            yield _gathered(tokens, form, size)
        yield _gathered(tokens, FORMATS[0], size, gated=True)
    large = TINY_LARGE if tiny else LARGE
    for tokens in (1,) if tiny else LARGE_TOKENS:
        for gated, down in ((False, False), (True, False), (False, True)):
            yield _gathered(tokens, FORMATS[0], large, gated=gated, down=down)
    yield from _plain((1, 20) if tiny else (1, 512), size)
    yield from _formats(size.matrix)


def _plain(counts: tuple[int, ...], size: Size) -> Iterator[Bench]:
    _, experts, top, hidden, inner, _ = size
    for tokens in counts:

        def make_mm(m: Maker, tokens: int = tokens) -> Call:
            x = m.normal(tokens, 1, 1, hidden, dtype="bfloat16")
            b = m.normal(experts, inner, hidden, dtype="bfloat16", scale=0.02).transpose(1, 2)
            return Call((x, b), {"rhs_indices": m.integers(0, experts, tokens, top)})

        chosen = round(experts * (1 - (1 - 1 / experts) ** (tokens * top)))
        yield Bench(
            op="gather_mm",
            name=f"bfloat16-{tokens}x{top}of{experts}",
            make=make_mm,
            dtype="bfloat16",
            bytes=2.0 * (chosen * inner * hidden + tokens * top * (inner + hidden)),
            flops=2.0 * tokens * top * inner * hidden,
            rank=2,
            peers={"torch, dense": Peer(torch.matmul, functools.partial(_dense, size=size))} if tokens > 1 else {},
        )


def _formats(matrix: tuple[int, int]) -> Iterator[Bench]:
    for mode, bits, group in FORMATS:
        form = format_of("quantize", mode, bits, group)

        def make_w(m: Maker, mode: str = mode, bits: int = bits, group: int = group) -> Call:
            return Call((m.normal(*matrix, dtype="bfloat16"), group, bits, mode))

        def make_q(m: Maker, mode: str = mode, bits: int = bits, group: int = group) -> Call:
            return Call((*matrices(m, format_of("quantize", mode, bits, group), "bfloat16", matrix),), {
                "group_size": group, "bits": bits, "mode": mode,
            })  # fmt: skip

        size = matrix[0] * matrix[1] * 2.0 + form.bytes(matrix[0] * matrix[1])
        yield Bench(op="quantize", name=f"{mode}{bits}-bfloat16", make=make_w, dtype="bfloat16", bytes=size, rank=2)
        yield Bench(op="dequantize", name=f"{mode}{bits}-bfloat16", make=make_q, dtype="bfloat16", bytes=size, rank=2)
