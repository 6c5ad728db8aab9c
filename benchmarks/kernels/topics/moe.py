"""Mixtures of experts: gathered quantized products at the sizes of Qwen3-30B-A3B; quantize and dequantize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from benchmarks.kernels.bench import Bench

from rocmend.kernels.common.formats import format_of
from rocmend.kernels.ops.gather_qmm import OP, Problem
from rocmend.kernels.ops.gather_qmm.cases import matrices
from rocmend.kernels.suite import Call, Maker

EXPERTS, TOP, HIDDEN, INNER = 128, 8, 2048, 768
FORMATS = (("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32))
MATRIX = (14336, 4096)
TOKENS = (1, 8, 32, 128, 512, 2048)


def _gathered(tokens: int, form: tuple[str, int, int], *, gated: bool) -> Bench:
    """Name the gate of a layer: hidden to inner; with ``gated`` both projections and the gate between them."""
    of = format_of("gather_qmm", *form)

    def make(m: Maker) -> Call:
        x = m.normal(tokens, 1, 1, HIDDEN, dtype="bfloat16")
        shape = (EXPERTS, INNER, HIDDEN)
        named: dict[str, Any] = {
            "rhs_indices": m.integers(0, EXPERTS, tokens, TOP),
            "group_size": of.group_size,
            "bits": of.bits,
            "mode": of.mode,
        }
        first = matrices(m, of, "bfloat16", shape)
        if gated:
            return Call((x, first, matrices(m, of, "bfloat16", shape)), named)
        return Call((x, *first), named)

    # As many experts as random tokens choose, on average.
    chosen = round(EXPERTS * (1 - (1 - 1 / EXPERTS) ** (tokens * TOP)))
    cost = OP.cost(Problem("bfloat16", *of, True, gated, tokens * TOP, 1, INNER, HIDDEN, chosen))
    kind = "swiglu-" if gated else ""
    return Bench(
        op="gather_qmm",
        name=f"{kind}{of.mode}{of.bits}-{tokens}x{TOP}of{EXPERTS}",
        make=make,
        dtype="bfloat16",
        bytes=cost.bytes,
        flops=cost.flops,
        function="gather_qmm_swiglu" if gated else None,
        reference="rocmend.kernels.ops.gather_qmm.reference:gather_qmm_swiglu" if gated else None,
        mlx=None
        if gated
        else (
            "benchmarks.kernels.topics.moe_mlx:gather_qmm",
            {"tokens": tokens, "mode": of.mode, "bits": of.bits, "group_size": of.group_size},
        ),
    )


def _dense(a: torch.Tensor, b: torch.Tensor, **_named: Any) -> torch.Tensor:
    """Return the dense product with as many rows: what a grouped one is measured against."""
    rows = a.reshape(-1, a.shape[-1]).repeat_interleave(TOP, 0)
    return rows @ b[0]


def benches() -> Iterator[Bench]:
    """Yield what is measured."""
    for tokens in TOKENS:
        for form in FORMATS if tokens in (1, 512) else FORMATS[:1]:
            yield _gathered(tokens, form, gated=False)
        yield _gathered(tokens, FORMATS[0], gated=True)
    for tokens in (1, 512):

        def make_mm(m: Maker, tokens: int = tokens) -> Call:
            x = m.normal(tokens, 1, 1, HIDDEN, dtype="bfloat16")
            b = m.normal(EXPERTS, INNER, HIDDEN, dtype="bfloat16", scale=0.02).transpose(1, 2)
            return Call((x, b), {"rhs_indices": m.integers(0, EXPERTS, tokens, TOP)})

        chosen = round(EXPERTS * (1 - (1 - 1 / EXPERTS) ** (tokens * TOP)))
        yield Bench(
            op="gather_mm",
            name=f"bfloat16-{tokens}x{TOP}of{EXPERTS}",
            make=make_mm,
            dtype="bfloat16",
            bytes=2.0 * (chosen * INNER * HIDDEN + tokens * TOP * (INNER + HIDDEN)),
            flops=2.0 * tokens * TOP * INNER * HIDDEN,
            peers={"torch-dense": _dense} if tokens > 1 else {},
        )
    for mode, bits, group in FORMATS:
        form = format_of("quantize", mode, bits, group)

        def make_w(m: Maker, mode: str = mode, bits: int = bits, group: int = group) -> Call:
            return Call((m.normal(*MATRIX, dtype="bfloat16"), group, bits, mode))

        def make_q(m: Maker, mode: str = mode, bits: int = bits, group: int = group) -> Call:
            return Call((*matrices(m, format_of("quantize", mode, bits, group), "bfloat16", MATRIX),), {
                "group_size": group, "bits": bits, "mode": mode,
            })  # fmt: skip

        size = MATRIX[0] * MATRIX[1] * 2.0 + form.bytes(MATRIX[0] * MATRIX[1])
        yield Bench(op="quantize", name=f"{mode}{bits}-bfloat16", make=make_w, dtype="bfloat16", bytes=size)
        yield Bench(op="dequantize", name=f"{mode}{bits}-bfloat16", make=make_q, dtype="bfloat16", bytes=size)
