"""Recurrences and short convolutions: prefill of 2,048 steps and a step of decoding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import torch
from benchmarks.kernels.bench import Bench
from torch.nn.functional import normalize, softplus

from rocmend.kernels.ops import depthwise_conv1d, gated_delta, selective_scan, ssd, wkv7
from rocmend.kernels.suite import Call, Maker

SIZES = ((1, 2048), (1, 1), (8, 1))


def _conv(m: Maker, batch: int, times: int) -> Call:
    x, weight = m.normal(batch, times, 8192, dtype="bfloat16"), m.normal(8192, 4, dtype="bfloat16")
    return Call((x, weight), {"state": m.normal(batch, 3, 8192, dtype="bfloat16"), "activation": "silu"})


def _scan(m: Maker, batch: int, times: int) -> Call:
    dt = softplus(m.normal(batch, times, 5120) - 2.0).bfloat16()
    b, c = (m.normal(batch, times, 16, dtype="bfloat16") for _ in range(2))
    a, d = -torch.exp(m.normal(5120, 16)), m.normal(5120)
    return Call((m.normal(batch, times, 5120, dtype="bfloat16"), dt, a, b, c, d), {"state": m.normal(batch, 5120, 16)})


def _ssd(m: Maker, batch: int, times: int) -> Call:
    b, c = (m.normal(batch, times, 1, 128, dtype="bfloat16", scale=0.3) for _ in range(2))
    x, dt = m.normal(batch, times, 80, 64, dtype="bfloat16"), m.normal(batch, times, 80, dtype="bfloat16")
    vectors = (m.normal(80), m.normal(80), m.normal(80) - 2.0)
    return Call((x, dt, vectors[0], b, c, *vectors[1:]), {"state": m.normal(batch, 80, 64, 128)})


def _delta(m: Maker, batch: int, times: int) -> Call:
    q, k = (normalize(m.normal(batch, times, 16, 128), dim=-1).bfloat16() for _ in range(2))
    gate = torch.exp(-softplus(m.normal(batch, times, 32)))
    beta = torch.sigmoid(m.normal(batch, times, 32))
    v = m.normal(batch, times, 32, 128, dtype="bfloat16")
    return Call((q * 0.088, k, v, gate, beta), {"state": m.normal(batch, 32, 128, 128)})


def _wkv7(m: Maker, batch: int, times: int) -> Call:
    shape = (batch, times, 32, 64)
    r, k, v = (m.normal(*shape, dtype="bfloat16") for _ in range(3))
    axis = normalize(m.normal(*shape), dim=-1)
    decay = torch.exp(-0.6 * torch.sigmoid(m.normal(*shape))).bfloat16()
    return Call(
        (r, decay, k, v, -axis.bfloat16(), (axis * torch.sigmoid(m.normal(*shape))).bfloat16()),
        {"state": m.normal(batch, 32, 64, 64)},
    )


def benches() -> Iterator[Bench]:
    """Yield what is measured."""
    for batch, times in SIZES:
        ops: tuple[tuple[str, Callable[[Maker, int, int], Call], tuple[float, float]], ...] = (
            (
                "depthwise_conv1d",
                _conv,
                depthwise_conv1d.OP.cost(depthwise_conv1d.Problem("bfloat16", batch, times, 8192, 4)),
            ),
            (
                "selective_scan",
                _scan,
                selective_scan.OP.cost(selective_scan.Problem("bfloat16", batch, times, 5120, 16)),
            ),
            ("ssd", _ssd, ssd.OP.cost(ssd.Problem("bfloat16", batch, times, 80, 1, 64, 128))),
            (
                "gated_delta",
                _delta,
                gated_delta.OP.cost(gated_delta.Problem("bfloat16", batch, times, 16, 32, 128, 128, False)),
            ),
            ("wkv7", _wkv7, wkv7.OP.cost(wkv7.Problem("bfloat16", batch, times, 32, 64))),
        )
        for op, make, cost in ops:
            flops, size = cost
            yield Bench(
                op=op,
                name=f"bfloat16-{batch}x{times}",
                make=functools.partial(make, batch=batch, times=times),
                dtype="bfloat16",
                bytes=size,
                flops=flops,
            )
