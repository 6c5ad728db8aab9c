"""Recurrences and short convolutions: prefill of 2,048 steps and a step of decoding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from benchmarks.kernels.bench import Bench
from torch.nn.functional import normalize, softplus

from rocmend.kernels.ops.conv import depthwise_conv1d
from rocmend.kernels.ops.recurrence import gated_delta, selective_scan, ssd, wkv7
from rocmend.kernels.suite import Call, Maker

SIZES = ((1, 2048), (1, 1), (8, 1))
TINY = ((1, 9), (2, 1))


class Widths(NamedTuple):
    """Channels and heads of each op."""

    conv: int = 8192
    scan: int = 5120
    ssd: int = 80
    keys: int = 16
    values: int = 32
    wkv: int = 32
    dim: int = 128


FULL, SMALL = Widths(), Widths(48, 40, 2, 1, 2, 2, 32)


def _conv(m: Maker, batch: int, times: int, w: Widths) -> Call:
    x, weight = m.normal(batch, times, w.conv, dtype="bfloat16"), m.normal(w.conv, 4, dtype="bfloat16")
    return Call((x, weight), {"state": m.normal(batch, 3, w.conv, dtype="bfloat16"), "activation": "silu"})


def _scan(m: Maker, batch: int, times: int, w: Widths) -> Call:
    dt = softplus(m.normal(batch, times, w.scan) - 2.0).bfloat16()
    b, c = (m.normal(batch, times, 16, dtype="bfloat16") for _ in range(2))
    a, d = -torch.exp(m.normal(w.scan, 16)), m.normal(w.scan)
    return Call(
        (m.normal(batch, times, w.scan, dtype="bfloat16"), dt, a, b, c, d), {"state": m.normal(batch, w.scan, 16)}
    )


def _ssd(m: Maker, batch: int, times: int, w: Widths) -> Call:
    b, c = (m.normal(batch, times, 1, w.dim, dtype="bfloat16", scale=0.3) for _ in range(2))
    x, dt = m.normal(batch, times, w.ssd, 64, dtype="bfloat16"), m.normal(batch, times, w.ssd, dtype="bfloat16")
    vectors = (m.normal(w.ssd), m.normal(w.ssd), m.normal(w.ssd) - 2.0)
    return Call((x, dt, vectors[0], b, c, *vectors[1:]), {"state": m.normal(batch, w.ssd, 64, w.dim)})


def _delta(m: Maker, batch: int, times: int, w: Widths) -> Call:
    q, k = (normalize(m.normal(batch, times, w.keys, w.dim), dim=-1).bfloat16() for _ in range(2))
    gate = torch.exp(-softplus(m.normal(batch, times, w.values)))
    beta = torch.sigmoid(m.normal(batch, times, w.values))
    v = m.normal(batch, times, w.values, w.dim, dtype="bfloat16")
    return Call((q * 0.088, k, v, gate, beta), {"state": m.normal(batch, w.values, w.dim, w.dim)})


def _wkv7(m: Maker, batch: int, times: int, w: Widths) -> Call:
    shape = (batch, times, w.wkv, 64)
    r, k, v = (m.normal(*shape, dtype="bfloat16") for _ in range(3))
    axis = normalize(m.normal(*shape), dim=-1)
    decay = torch.exp(-0.6 * torch.sigmoid(m.normal(*shape))).bfloat16()
    return Call(
        (r, decay, k, v, -axis.bfloat16(), (axis * torch.sigmoid(m.normal(*shape))).bfloat16()),
        {"state": m.normal(batch, w.wkv, 64, 64)},
    )


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    w = SMALL if tiny else FULL
    for batch, times in TINY if tiny else SIZES:
        ops: tuple[tuple[str, Callable[[Maker, int, int, Widths], Call], tuple[float, float]], ...] = (
            (
                "depthwise_conv1d",
                _conv,
                depthwise_conv1d.OP.cost(depthwise_conv1d.Problem("bfloat16", batch, times, w.conv, 4)),
            ),
            (
                "selective_scan",
                _scan,
                selective_scan.OP.cost(selective_scan.Problem("bfloat16", batch, times, w.scan, 16)),
            ),
            ("ssd", _ssd, ssd.OP.cost(ssd.Problem("bfloat16", batch, times, w.ssd, 1, 64, w.dim))),
            (
                "gated_delta",
                _delta,
                gated_delta.OP.cost(
                    gated_delta.Problem("bfloat16", batch, times, w.keys, w.values, w.dim, w.dim, False)
                ),
            ),
            ("wkv7", _wkv7, wkv7.OP.cost(wkv7.Problem("bfloat16", batch, times, w.wkv, 64))),
        )
        for op, maker, cost in ops:
            make: Callable[..., Call] = maker
            flops, size = cost
            yield Bench(
                op=op,
                name=f"bfloat16-{batch}x{times}",
                make=functools.partial(make, batch=batch, times=times, w=w),
                dtype="bfloat16",
                bytes=size,
                flops=flops,
                rank=2,
            )
