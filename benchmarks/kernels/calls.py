"""How long a whole public call of a decode step keeps the CPU busy: ``python -m benchmarks.kernels.calls [OUT.json]``.

Calls are queued a few hundred at a time without waiting for the GPU; the figure is the least mean of several rounds, in
microseconds, with torch's own function beside it where there is one. Shapes are those of one token of a model with a
hidden size of 4096, so that kernels are shorter than calls and the queue never fills.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from rocmend import kernels
from rocmend.kernels import choose

CALLS = 200
ROUNDS = 30


class Timed(NamedTuple):
    """A call to be timed, and torch's.

    Args:
        name: Of the op.
        ours: Our public function with its arguments.
        torchs: torch's function with its arguments, or None.
    """

    name: str
    ours: Callable[[], Any]
    torchs: Callable[[], Any] | None = None


def microseconds(call: Callable[[], Any]) -> float:
    """Return the CPU time of a warm call."""
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - begin)
    torch.cuda.synchronize()
    return best / CALLS * 1e6


def rows() -> Iterator[Timed]:
    """Yield the ops over rows."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device="cuda")

    x, residual, weight = normal(1, 1, 4096), normal(1, 1, 4096), normal(4096)
    gate, up = normal(1, 1, 11008), normal(1, 1, 11008)
    scores = normal(1, 32, 1, 4096)
    logits = normal(1, 32000)
    table, token = normal(32000, 4096), torch.tensor([[17]], device="cuda")
    turned = normal(1, 8, 128, 16).transpose(1, 2)
    yield Timed(
        "rms_norm",
        lambda: kernels.rms_norm(x, weight, 1e-5),
        lambda: functional.rms_norm(x, (4096,), weight, 1e-5),
    )
    yield Timed("add_rms_norm", lambda: kernels.add_rms_norm(x, residual, weight, 1e-5))
    yield Timed(
        "layer_norm",
        lambda: kernels.layer_norm(x, weight, weight, 1e-5),
        lambda: functional.layer_norm(x, (4096,), weight, weight, 1e-5),
    )
    yield Timed("swiglu", lambda: kernels.swiglu(gate, up), lambda: functional.silu(gate) * up)
    yield Timed("softmax", lambda: kernels.softmax(scores, -1), lambda: torch.softmax(scores, -1))
    yield Timed("argmax", lambda: kernels.argmax(logits, -1), lambda: torch.argmax(logits, -1))
    yield Timed("take", lambda: kernels.take(table, token, 0), lambda: functional.embedding(token, table))
    yield Timed("copy", lambda: kernels.copy(turned), turned.contiguous)


def attention() -> Iterator[Timed]:
    """Yield the ops of attention."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device="cuda")

    q, k = normal(1, 32, 1, 128), normal(1, 8, 1, 128)
    keys, values = normal(1, 8, 1024, 128), normal(1, 8, 1024, 128)
    scale = 128**-0.5
    yield Timed("rope", lambda: kernels.rope(q, 128, offset=1000))
    yield Timed("rope_pair", lambda: kernels.rope_pair(q, k, 128, offset=1000))
    yield Timed("attention_decode", lambda: kernels.attention_decode(q, keys, values, scale=scale))
    yield Timed(
        "scaled_dot_product_attention",
        lambda: kernels.scaled_dot_product_attention(q, keys, values, scale=scale),
        lambda: functional.scaled_dot_product_attention(q, keys, values, scale=scale, enable_gqa=True),
    )


def products() -> Iterator[Timed]:
    """Yield products with weights."""
    x = torch.randn(1, 2048, dtype=torch.float16, device="cuda")
    weights = kernels.quantize(torch.randn(2048, 2048, dtype=torch.float16, device="cuda"))
    plain = torch.randn(2048, 2048, dtype=torch.float16, device="cuda")
    experts = kernels.quantize(torch.randn(8, 1024, 2048, dtype=torch.float16, device="cuda"))
    one = x.view(1, 1, 1, 2048)
    chosen = torch.tensor([[1, 5]], device="cuda")
    image = torch.randn(1, 28, 28, 64, dtype=torch.float16, device="cuda")
    taps = torch.randn(64, 3, 3, 64, dtype=torch.float16, device="cuda")
    first, filters = image.movedim(-1, 1), taps.movedim(-1, 1)
    yield Timed("quantized_matmul", lambda: kernels.quantized_matmul(x, *weights), lambda: functional.linear(x, plain))
    yield Timed("gather_qmm", lambda: kernels.gather_qmm(one, *experts, rhs_indices=chosen))
    yield Timed("gather_qmm_swiglu", lambda: kernels.gather_qmm_swiglu(one, experts, experts, rhs_indices=chosen))
    yield Timed(
        "conv2d",
        lambda: kernels.conv2d(image, taps, padding=1),
        lambda: functional.conv2d(first, filters, padding=1),
    )
    with choose.prefer("triton"):
        yield Timed("conv2d (triton)", lambda: kernels.conv2d(image, taps, padding=1))


def main() -> None:
    """Time every call and print a line each."""
    found = {}
    with torch.inference_mode():
        for source in (rows, attention, products):
            for one in source():
                ours = microseconds(one.ours)
                torchs = None if one.torchs is None else microseconds(one.torchs)
                found[one.name] = {"ours_us": round(ours, 2), "torch_us": None if torchs is None else round(torchs, 2)}
                beside = "" if torchs is None else f"   torch {torchs:6.2f}"
                sys.stdout.write(f"{one.name:30} {ours:6.2f} us{beside}\n")
                sys.stdout.flush()
    if len(sys.argv) > 1:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        Path(sys.argv[1]).write_text(json.dumps({**about, "calls": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
