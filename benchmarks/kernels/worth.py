"""Show what kernels that only NVIDIA GPUs run are worth in an op: with all of them, with none, and without each.

    python benchmarks/kernels/worth.py --out worth-ops.json

Calls of one op follow each other in a CUDA graph, on weights that do not fit the cache together. Times are microseconds
a call, the best of several replays. A kernel that is not the op's choice for a shape changes nothing there.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from rocmend import kernels
from rocmend.kernels.without import kernels as kernel_names
from rocmend.kernels.without import switched_off

DEVICE = torch.device("cuda")
CACHE_BYTES = 160_000_000
Calls = list[Callable[[], Any]]


class Shape(NamedTuple):
    """An op's calls, and the kernels that may be its choice."""

    name: str
    kernels: tuple[str, ...]
    make: Callable[[], Calls]


def _of(op: str) -> tuple[str, ...]:
    return tuple(name for name in kernel_names("nvidia") if name.startswith(f"{op}."))


def _weights(*shape: int, columns: int, bits: int = 4, group: int = 64) -> tuple[torch.Tensor, ...]:
    words = torch.randint(-(2**31), 2**31 - 1, (*shape, columns * bits // 32), dtype=torch.int32, device=DEVICE)
    scales, biases = (torch.randn(*shape, columns // group, device=DEVICE).bfloat16() / 16 for _ in range(2))
    return words, scales, biases


def _product(rows: int, n: int, k: int, bits: int) -> Calls:
    size = n * k * bits // 8
    x = torch.randn(rows, k, device=DEVICE).bfloat16()
    some = [_weights(n, columns=k, bits=bits) for _ in range(max(1, CACHE_BYTES // size))]
    return [functools.partial(kernels.quantized_matmul, x, *w, True, 64, bits) for w in some]


def _experts(tokens: int, n: int, k: int, *, gated: bool) -> Calls:
    count, chosen = 128, 8
    x = torch.randn(tokens, 1, 1, k, device=DEVICE).bfloat16()
    if not gated:
        x = torch.randn(tokens, chosen, 1, k, device=DEVICE).bfloat16()
    first, second = (_weights(count, n, columns=k) for _ in range(2))
    picks = [
        torch.stack([torch.randperm(count, device=DEVICE)[:chosen] for _ in range(tokens)]).to(torch.int32)
        for _ in range(16)
    ]
    if gated:
        return [functools.partial(kernels.gather_qmm_swiglu, x, first, second, None, p, 64, 4) for p in picks]
    return [functools.partial(kernels.gather_qmm, x, *first, None, p, True, 64, 4) for p in picks]


def _cache(length: int) -> Calls:
    q = torch.randn(1, 32, 1, 128, device=DEVICE).bfloat16()

    def one() -> tuple[torch.Tensor, ...]:
        return _weights(1, 8, length, columns=128, bits=8)

    pairs = [(one(), one()) for _ in range(max(1, CACHE_BYTES // (8 * length * 256)))]
    return [functools.partial(kernels.quantized_attention, q, k, v, scale=128**-0.5) for k, v in pairs]


def shapes() -> Iterator[Shape]:
    """Yield what is timed."""
    for bits in (4, 8):
        for rows in (1, 2, 4, 8, 16, 32, 64, 128, 512):
            for n, k in ((4096, 4096), (14336, 4096)):
                yield Shape(
                    f"quantized_matmul b{bits} {rows}x{k}->{n}",
                    _of("quantized_matmul"),
                    functools.partial(_product, rows, n, k, bits),
                )
    for tokens in (1, 4, 16, 64, 512, 2048):
        for gated, n, k in ((True, 768, 2048), (False, 2048, 768)):
            yield Shape(
                f"gather_qmm{'_swiglu' * gated} {tokens} tokens, 8 of 128 experts, {k}->{n}",
                _of("gather_qmm"),
                functools.partial(_experts, tokens, n, k, gated=gated),
            )
    for length in (2048, 32768):
        yield Shape(
            f"quantized_attention b8 {length} keys",
            _of("quantized_attention"),
            functools.partial(_cache, length),
        )


def timed(calls: Calls) -> float:
    """Return microseconds a call."""
    for _ in range(2):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    best = float("inf")
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1e3 / 2 / len(calls))
    return best


def main() -> None:
    """Time every shape in every variant."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--only", default="", help="shapes whose names contain this")
    asked = made.parse_args()
    result: dict[str, dict[str, float]] = {}
    for shape in shapes():
        if asked.only not in shape.name:
            continue
        calls = shape.make()
        row: dict[str, float] = {"all": timed(calls)}
        with switched_off("nvidia"):
            row["portable"] = timed(calls)
        for name in shape.kernels:
            with switched_off(name):
                row[name.partition(".")[2]] = timed(calls)
        result[shape.name] = row
        asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{shape.name:60} " + "  ".join(f"{name} {us:.1f}" for name, us in row.items()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
