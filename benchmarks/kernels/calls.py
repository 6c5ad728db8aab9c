"""How long a whole public call keeps the CPU busy: ``python -m benchmarks.kernels.calls [OUT.json]``.

Each round begins with nothing queued, and queues as many calls as the driver takes without waiting for the GPU: it
holds 1,024 launches. The figure is the least mean of several rounds, in microseconds, with the median of the rounds,
how many kernels a call launches, and torch's own function beside it where there is one. The driver takes about 3 us of
a launch. Most shapes are those of one token of a model with a hidden size of 4096. ``quantized_matmul`` of 512 rows is
what is selected for them: a kernel that dequantizes, and torch's product; the kernel that unpacks them on the way
stands beside it.

``python -m benchmarks.kernels.calls --host [OUT.json]`` needs no GPU: it measures what of a call is Python, with
launches that do nothing (see ``host_calls``).
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.nn import functional
from torch.nn import grad as gradients_of

from rocmend import kernels
from rocmend.kernels import select
from rocmend.kernels.ops.conv.conv.function import input_gradient
from rocmend.kernels.ops.conv.conv.geometry import geometry_of

CALLS, FEW_CALLS = 200, 50
PASSES, ROUNDS, WARM_CALLS, COUNTED = 3, 10, 100, 10
"""A pass is over all ops, so that a slow while of the host does not make one of them slow."""
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Timed(NamedTuple):
    """A call to be timed, and torch's.

    Args:
        name: Of the op.
        ours: Our public function with its arguments.
        torchs: torch's function with its arguments, or None.
        calls: How many are queued at a time: fewer of those that launch several kernels.
        tier: The tier or implementation that is asked for, or None.
    """

    name: str
    ours: Callable[[], Any]
    torchs: Callable[[], Any] | None = None
    calls: int = CALLS
    tier: str | None = None

    def asked(self) -> contextlib.AbstractContextManager[None]:
        """Ask for it."""
        return contextlib.nullcontext() if self.tier is None else select.prefer(self.tier)


def microseconds(call: Callable[[], Any], calls: int) -> list[float]:
    """Return the CPU time of a warm call, for each round the mean over so many of them."""
    wait: Callable[[], object] = torch.cuda.synchronize if torch.cuda.is_available() else int
    for _ in range(4 * WARM_CALLS // calls + 1):
        for _ in range(calls):
            call()
        wait()
    rounds = []
    for _ in range(ROUNDS):
        wait()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter() - begin) / calls * 1e6)
    wait()
    return rounds


def launches(timed: Sequence[Timed]) -> list[int]:
    """Return how many kernels each call launches, copies and fills of memory among them.

    A profiler counts them, after everything is timed: it makes launches slower. Copies to the GPU, which no call makes,
    stand between the calls of two of them.
    """
    from torch.profiler import ProfilerActivity, profile

    mark, marked = torch.zeros(1).pin_memory(), torch.zeros(1, device=DEVICE)
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        for one in timed:
            with one.asked():
                marked.copy_(mark, non_blocking=True)
                for _ in range(COUNTED):
                    one.ours()
        torch.cuda.synchronize()
    seen = [one for one in profiled.events() if one.device_type.name == "CUDA"]
    counts: list[int] = []
    for event in sorted(seen, key=lambda one: float(one.time_range.start)):
        if event.name.startswith("Memcpy HtoD"):
            counts.append(0)
        elif counts:
            counts[-1] += 1
    return [round(count / COUNTED) for count in counts]


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """Return normal numbers on the device that is measured."""
    return torch.randn(shape, dtype=dtype, device=DEVICE)


def rows() -> Iterator[Timed]:
    """Yield the ops over rows."""
    x, residual, weight, bias = normal(1, 1, 4096), normal(1, 1, 4096), normal(4096), normal(4096)
    gate, up = normal(1, 1, 11008), normal(1, 1, 11008)
    scores = normal(1, 32, 1, 4096)
    logits = normal(1, 32000)
    table, token = normal(32000, 4096), torch.tensor([[17]], device=DEVICE)
    turned = normal(1, 8, 128, 16).transpose(1, 2)
    yield Timed(
        "rms_norm",
        lambda: kernels.rms_norm(x, weight, 1e-5),
        lambda: functional.rms_norm(x, (4096,), weight, 1e-5),
    )
    yield Timed("add_rms_norm", lambda: kernels.add_rms_norm(x, residual, weight, 1e-5))
    yield Timed(
        "layer_norm",
        lambda: kernels.layer_norm(x, weight, bias, 1e-5),
        lambda: functional.layer_norm(x, (4096,), weight, bias, 1e-5),
    )
    yield Timed("swiglu", lambda: kernels.swiglu(gate, up), lambda: functional.silu(gate) * up)
    yield Timed("softmax", lambda: kernels.softmax(scores, -1), lambda: torch.softmax(scores, -1))
    yield Timed("argmax", lambda: kernels.argmax(logits, -1), lambda: torch.argmax(logits, -1))
    yield Timed("take", lambda: kernels.take(table, token, 0), lambda: functional.embedding(token, table))
    yield Timed("copy", lambda: kernels.copy(turned), turned.contiguous)


def attention() -> Iterator[Timed]:
    """Yield the ops of attention."""
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
    many, before, of_them = normal(1, 32, 512, 128), normal(1, 8, 512, 128), normal(1, 8, 512, 128)
    yield Timed(
        "attention, 512 tokens",
        lambda: kernels.scaled_dot_product_attention(many, before, of_them, scale=scale, mask="causal"),
        lambda: functional.scaled_dot_product_attention(many, before, of_them, is_causal=True, enable_gqa=True),
        FEW_CALLS,
    )
    back = partial(kernels.attention_backward, normal(1, 32, 512, 128), many, before, of_them, scale=scale)
    yield Timed("attention_backward", partial(back, mask="causal"), None, FEW_CALLS)


def products() -> Iterator[Timed]:
    """Yield products with weights."""
    half = torch.float16
    x, plain = normal(1, 2048, dtype=half), normal(2048, 2048, dtype=half)
    weights = kernels.quantize(normal(2048, 2048, dtype=half))
    experts, others = (kernels.quantize(normal(8, 1024, 2048, dtype=half)) for _ in range(2))
    one, many = x.view(1, 1, 1, 2048), normal(512, 1, 1, 2048, dtype=half)
    chosen = torch.tensor([[1, 5]], device=DEVICE)
    all_chosen = torch.randint(8, (512, 2), device=DEVICE)
    image, taps = normal(1, 28, 28, 64, dtype=half), normal(64, 3, 3, 64, dtype=half)
    first, filters = image.movedim(-1, 1), taps.movedim(-1, 1)
    yield Timed("quantized_matmul", lambda: kernels.quantized_matmul(x, *weights), lambda: functional.linear(x, plain))
    for count in (8, 32, 512):
        some = normal(count, 2048, dtype=half)
        yield Timed(
            f"quantized_matmul, {count} rows",
            partial(kernels.quantized_matmul, some, *weights),
            partial(functional.linear, some, plain),
            FEW_CALLS,
        )
    yield Timed(
        "quantized_matmul, 512 rows (unpacked on the way)",
        partial(kernels.quantized_matmul, some, *weights),
        None,
        FEW_CALLS,
        "triton",
    )
    yield Timed("gather_qmm", lambda: kernels.gather_qmm(one, *experts, rhs_indices=chosen))
    yield Timed("gather_qmm_swiglu", lambda: kernels.gather_qmm_swiglu(one, experts, others, rhs_indices=chosen))
    yield Timed(
        "gather_qmm, 1024 rows", lambda: kernels.gather_qmm(many, *experts, rhs_indices=all_chosen), None, FEW_CALLS
    )
    yield Timed("dequantize", lambda: kernels.dequantize(*weights), None, FEW_CALLS)
    yield Timed("quantize", lambda: kernels.quantize(plain), None, FEW_CALLS)
    yield Timed(
        "conv2d",
        lambda: kernels.conv2d(image, taps, padding=1),
        lambda: functional.conv2d(first, filters, padding=1),
    )
    yield Timed("conv2d (triton)", lambda: kernels.conv2d(image, taps, padding=1), tier="triton")


def orders() -> Iterator[Timed]:
    """Yield losses, scans and orders."""
    logits, targets = normal(64, 32000), torch.randint(32000, (64,), device=DEVICE)
    rows, long = normal(64, 128, dtype=torch.float32), normal(1, 151936, dtype=torch.float32)
    yield Timed("logsumexp", lambda: kernels.logsumexp(logits, -1), lambda: torch.logsumexp(logits, -1), FEW_CALLS)
    yield Timed(
        "cross_entropy",
        lambda: kernels.cross_entropy(logits, targets),
        lambda: functional.cross_entropy(logits, targets, reduction="none"),
        FEW_CALLS,
    )
    yield Timed("cumsum", lambda: kernels.cumsum(rows, -1), lambda: torch.cumsum(rows, -1))
    yield Timed("cumsum, cut", lambda: kernels.cumsum(long, -1), lambda: torch.cumsum(long, -1), FEW_CALLS)
    yield Timed("sort", lambda: kernels.sort(rows, -1), lambda: torch.sort(rows, -1), FEW_CALLS)
    yield Timed("topk", lambda: kernels.topk(rows, 8), lambda: torch.topk(rows, 8), FEW_CALLS)
    yield Timed("topk, long", lambda: kernels.topk(long, 50), lambda: torch.topk(long, 50), FEW_CALLS)


def recurrences() -> Iterator[Timed]:
    """Yield one token of the recurrent ops, and of attention to a quantized cache."""
    q = normal(1, 32, 1, 128)
    for bits in (4, 8):
        k, v = (kernels.quantize(normal(1, 8, 1024, 128), 64, bits) for _ in range(2))
        yield Timed(
            f"quantized_attention, {bits} bits",
            partial(kernels.quantized_attention, q, k, v, scale=0.1, bits=bits),
        )
    query, key, value = normal(1, 1, 16, 128), normal(1, 1, 16, 128), normal(1, 1, 32, 128)
    state, (g, beta) = normal(1, 32, 128, 128, dtype=torch.float32), torch.rand(2, 1, 1, 32, device=DEVICE)
    yield Timed("gated_delta", lambda: kernels.gated_delta(query, key, value, g, beta, state=state))
    x, steps, a = normal(1, 1, 4096), torch.rand(1, 1, 4096, device=DEVICE), -torch.rand(4096, 16, device=DEVICE)
    b, c, d, held = normal(1, 1, 16), normal(1, 1, 16), normal(4096), normal(1, 4096, 16, dtype=torch.float32)
    yield Timed("selective_scan", lambda: kernels.selective_scan(x, steps, a, b, c, d, state=held))
    wide, dt, heads = normal(1, 1, 64, 64), torch.rand(1, 1, 64, device=DEVICE), torch.rand(3, 64, device=DEVICE)
    left, right = normal(1, 1, 1, 128), normal(1, 1, 1, 128)
    a_log, skip, bias = heads
    stored = normal(1, 64, 64, 128, dtype=torch.float32)
    yield Timed("ssd_scan", lambda: kernels.ssd_scan(wide, dt, a_log, left, right, skip, bias, state=stored))
    matrix, six = normal(1, 32, 64, 64, dtype=torch.float32), [normal(1, 1, 32, 64) for _ in range(6)]
    yield Timed("wkv7", lambda: kernels.wkv7(*six, state=matrix))


def gradients() -> Iterator[Timed]:
    """Yield gradients, as autograd asks for them."""
    x, other, weight, grad = normal(8, 4096), normal(8, 4096), normal(4096), normal(8, 4096)
    logits, targets = normal(64, 32000), torch.randint(32000, (64,), device=DEVICE)
    image, above = normal(1, 28, 28, 64), normal(1, 28, 28, 64)
    yield Timed("rms_norm_backward", lambda: kernels.rms_norm_backward(grad, x, weight, 1e-5))
    yield Timed("glu_backward", lambda: kernels.glu_backward(grad, x, other, "silu"))
    yield Timed("softmax_backward", lambda: kernels.softmax_backward(grad, x))
    losses = torch.rand(64, device=DEVICE)
    yield Timed(
        "cross_entropy_backward", lambda: kernels.cross_entropy_backward(losses, logits, targets), None, FEW_CALLS
    )
    taps = normal(64, 3, 3, 64)
    first, last, filters = image.movedim(-1, 1), above.movedim(-1, 1), taps.movedim(-1, 1)
    five, wide, of_taps = image.unsqueeze(1), above.unsqueeze(1), taps.unsqueeze(1)
    geometry = geometry_of("conv2d", five.shape, of_taps.shape, 1, (0, 1, 1), 1, 1, 1, False)
    by_tier: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
        (
            "conv_weight_gradient",
            lambda: kernels.conv_weight_gradient(image, above, (3, 3), padding=1),
            lambda: gradients_of.conv2d_weight(first, filters.shape, last, padding=1),
        ),
        (
            "conv, input gradient",
            lambda: input_gradient(wide, of_taps, geometry),
            lambda: gradients_of.conv2d_input(first.shape, filters, last, padding=1),
        ),
        (
            # Torch's weights have the other channels in front: with them torch need not copy.
            "conv_transpose2d",
            lambda: kernels.conv_transpose2d(above, taps, padding=1),
            lambda: functional.conv_transpose2d(last, filters, padding=1),
        ),
    )
    for name, ours, torchs in by_tier:
        yield Timed(f"{name} (vendor)", ours, torchs, tier="vendor")
        yield Timed(f"{name} (triton)", ours, tier="triton")


SOURCES = (rows, attention, products, orders, recurrences, gradients)


def works(one: Timed) -> bool:
    """Return whether a call works; what it fails with is told, and the others are measured without it."""
    try:
        with one.asked():
            one.ours()
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        sys.stderr.write(f"{one.name} is left out: {error}\n")
        return False
    return True


def measure() -> dict[str, dict[str, float | None]]:
    """Time every call, print a line each, and return what was found."""
    gpu = DEVICE == "cuda"
    with torch.inference_mode():
        timed = [one for source in SOURCES for one in source() if (gpu or one.tier != "vendor") and works(one)]
        ours: list[list[float]] = [[] for _ in timed]
        torchs: list[list[float]] = [[] for _ in timed]
        for _ in range(PASSES):
            for one, by_us, by_torch in zip(timed, ours, torchs, strict=True):
                with one.asked():
                    by_us.extend(microseconds(one.ours, one.calls))
                if one.torchs and gpu:
                    by_torch.extend(microseconds(one.torchs, one.calls))
        counts = launches(timed) if gpu else [0] * len(timed)
    found: dict[str, dict[str, float | None]] = {}
    for one, by_us, by_torch, count in zip(timed, ours, torchs, counts, strict=True):
        found[one.name] = {
            "ours_us": round(min(by_us), 2),
            "median_us": round(statistics.median(by_us), 2),
            "torch_us": round(min(by_torch), 2) if by_torch else None,
            "kernels": count,
        }
        several = f"   {count} kernels, {min(by_us) / count:5.2f} each" if count > 1 else ""
        beside = f"   torch {min(by_torch):6.2f}" if by_torch else ""
        sys.stdout.write(
            f"{one.name:48} {min(by_us):6.2f} us, median {statistics.median(by_us):6.2f}{beside}{several}\n"
        )
    return found


def main() -> None:
    """Measure, and write the figures down where a file is named."""
    names = [one for one in sys.argv[1:] if one != "--host"]
    about = {"device": "none: Python alone", "torch": torch.__version__}
    if "--host" in sys.argv:
        from benchmarks.kernels.host_calls import no_launches

        with no_launches():
            found = measure()
    else:
        about["device"] = torch.cuda.get_device_name()
        found = measure()
    if names:
        Path(names[0]).write_text(json.dumps({**about, "calls": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
