"""Show what kernels that only NVIDIA GPUs run are worth in an op: with all of them, with none, and without each.

    python benchmarks/kernels/worth.py --out worth-ops.json

It prints the rows of the table in docs/explanation/hopper-kernels.md, and last what the norm before products costs in
their launch and in its own (portable kernels). Calls of one op follow each other in a CUDA graph, on weights that do
not fit the cache together. Times are microseconds a call, the best of several replays. A kernel that is not the op's
choice for a shape changes nothing there.
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
from rocmend.kernels.select import prefer
from rocmend.kernels.without import kernels as kernel_names
from rocmend.kernels.without import switched_off

DEVICE = torch.device("cuda")
CACHE_BYTES = 160_000_000
Calls = list[Callable[[], Any]]
Weights = tuple[torch.Tensor | None, ...]
Form = tuple[int, str]


class Shape(NamedTuple):
    """An op's calls.

    Args:
        name: Of the shape; begins with the op's function.
        op: Whose kernels may be the choice.
        make: Returns the calls.
        preferred: Implementation that is asked for; the shape is timed with portable kernels only then.
    """

    name: str
    op: str
    make: Callable[[], Calls]
    preferred: str = ""


def _weights(*shape: int, columns: int, bits: int = 4, mode: str = "affine") -> Weights:
    words = torch.randint(-(2**31), 2**31 - 1, (*shape, columns * bits // 32), dtype=torch.int32, device=DEVICE)
    if mode == "mxfp4":
        scales = torch.randint(120, 130, (*shape, columns // 32), dtype=torch.uint8, device=DEVICE)
        return words, scales, None
    scales, biases = (torch.randn(*shape, columns // 64, device=DEVICE).bfloat16() / 16 for _ in range(2))
    return words, scales, biases


def _times(count: int, make: Callable[[], Weights]) -> list[Weights]:
    """Make weights of so many matrices as often as no cache holds."""
    return [make() for _ in range(max(1, CACHE_BYTES // count))]


def _product(rows: int, n: int, k: int, bits: int) -> Calls:
    x = torch.randn(rows, k, device=DEVICE).bfloat16()
    some = _times(n * k * bits // 8, lambda: _weights(n, columns=k, bits=bits))
    return [functools.partial(kernels.quantized_matmul, x, *w, True, 64, bits) for w in some]


def _pair(rows: int, n: int, k: int) -> Calls:
    x = torch.randn(rows, k, device=DEVICE).bfloat16()
    pairs = _times(n * k // 2, lambda: _weights(2, n, columns=k))
    return [functools.partial(kernels.quantized_swiglu, x, *_both(pair), 64, 4) for pair in pairs]


def _three(rows: int, k: int) -> Calls:
    x = torch.randn(rows, k, device=DEVICE).bfloat16()
    some = [
        [_weights(n, columns=k) for n in (k, k // 4, k // 4)] for _ in range(max(1, CACHE_BYTES // (k * k * 3 // 4)))
    ]
    return [functools.partial(kernels.quantized_matmul_many, x, weights, 64, 4) for weights in some]


def _both(pair: Weights) -> tuple[Weights, Weights]:
    first, second = (tuple(None if part is None else part[at] for part in pair) for at in range(2))
    return first, second


def _normed(n: int, k: int, *, together: bool) -> Calls:
    """Make calls of a gated pair behind a norm, in one launch or in two."""
    x, weight = (torch.randn(1, k, device=DEVICE).bfloat16() for _ in range(2))

    def apart(first: Weights, second: Weights) -> Any:
        return kernels.quantized_swiglu(kernels.rms_norm(x, weight[0], 1e-6), first, second, 64, 4)

    def whole(first: Weights, second: Weights) -> Any:
        return kernels.rms_norm_projections(x, weight[0], 1e-6, (first, second), 64, 4, gated=True)

    pairs = _times(n * k // 2, lambda: _weights(2, n, columns=k))
    return [functools.partial(whole if together else apart, *_both(pair)) for pair in pairs]


def _experts(picked: tuple[int, int], tokens: int, shape: tuple[int, int], form: Form, *, gated: bool) -> Calls:
    (chosen, experts), (n, k), (bits, mode) = picked, shape, form
    x = torch.randn(tokens, 1 if gated else chosen, 1, k, device=DEVICE).bfloat16()
    first, second = (_weights(experts, n, columns=k, bits=bits, mode=mode) for _ in range(2))
    picks = [
        torch.stack([torch.randperm(experts, device=DEVICE)[:chosen] for _ in range(tokens)]).to(torch.int32)
        for _ in range(16)
    ]
    options = (32 if mode == "mxfp4" else 64, bits, mode)
    if gated:
        return [functools.partial(kernels.gather_qmm_swiglu, x, first, second, None, p, *options) for p in picks]
    return [functools.partial(kernels.gather_qmm, x, *first, None, p, True, *options) for p in picks]


def _cache(length: int) -> Calls:
    q = torch.randn(1, 32, 1, 128, device=DEVICE).bfloat16()

    def one() -> Weights:
        return _weights(1, 8, length, columns=128, bits=8)

    pairs = [(one(), one()) for _ in range(max(1, CACHE_BYTES // (8 * length * 256)))]
    return [functools.partial(kernels.quantized_attention, q, k, v, scale=128**-0.5) for k, v in pairs]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def shapes() -> Iterator[Shape]:
    """Yield what is timed."""
    make = functools.partial
    for bits in (4, 8):
        for rows in (1, 2, 8, 16, 64, 128, 512):
            for n, k in ((4096, 4096), (14336, 4096)):
                name = f"quantized_matmul, {bits} bits, {k} → {n}, {_count(rows, 'row')}"
                yield Shape(name, "quantized_matmul", make(_product, rows, n, k, bits))
    for rows in (1, 8):
        name = f"quantized_swiglu, 4 bits, 4096 → 2 x 14336, {_count(rows, 'row')}"
        yield Shape(name, "quantized_projections", make(_pair, rows, 14336, 4096))
        name = f"quantized_matmul_many, 4 bits, 4096 → 4096 + 1024 + 1024, {_count(rows, 'row')}"
        yield Shape(name, "quantized_projections", make(_three, rows, 4096))
    four, eight, floats = (4, "affine"), (8, "affine"), (4, "mxfp4")
    for form, counts in ((four, (1, 4, 16, 32, 64, 512, 2048)), (eight, (1, 16)), (floats, (1, 16, 512))):
        for tokens in counts:
            for gated, n, k in ((True, 768, 2048), (False, 2048, 768)):
                label = "mxfp4" if form is floats else f"{form[0]} bits"
                name = f"gather_qmm{'_swiglu' * gated}, {label}, 8 of 128 experts, {k} → {n}, {_count(tokens, 'token')}"
                yield Shape(name, "gather_qmm", make(_experts, (8, 128), tokens, (n, k), form, gated=gated))
    name = "gather_qmm_swiglu, mxfp4, 4 of 32 experts, 2880 → 2880, 1 token"
    yield Shape(name, "gather_qmm", make(_experts, (4, 32), 1, (2880, 2880), floats, gated=True))
    for length in (2048, 32768):
        yield Shape(f"quantized_attention, 8 bits, {length} keys", "quantized_attention", make(_cache, length))
    for k, n in ((1024, 3072), (4096, 14336), (8192, 28672)):
        for how, together, preferred in (("one launch", True, "gemv"), ("two launches", False, "triton")):
            name = f"rms_norm and quantized_swiglu, 4 bits, {k} → 2 x {n}, 1 row, {how}"
            yield Shape(name, "quantized_projections", make(_normed, n, k, together=together), preferred)


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
        calls, row = shape.make(), dict[str, float]()
        with switched_off("nvidia"), prefer(*filter(None, [shape.preferred])):
            row["portable"] = timed(calls)
        if not shape.preferred:
            row = {"all": timed(calls), **row}
            for name in kernel_names("nvidia"):
                op, _, kernel = name.partition(".")
                if op == shape.op:
                    with switched_off(name):
                        row[kernel] = timed(calls)
        result[shape.name] = row
        asked.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{shape.name:72} " + "  ".join(f"{name} {us:.1f}" for name, us in row.items()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
