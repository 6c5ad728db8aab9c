"""Attention of one query to a long cache, plain and quantized; torch beside."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from benchmarks.kernels.bench import Bench, Peer
from torch.nn.functional import scaled_dot_product_attention

from rocmend.kernels.ops.attention import attention_decode, quantized_attention
from rocmend.kernels.suite import Call, Maker


class Shape(NamedTuple):
    """Batch, heads, KV heads, keys and head dimension."""

    batch: int
    heads: int
    kv_heads: int
    keys: int
    dim: int


SHAPES = (
    *(Shape(1, 32, 8, keys, 128) for keys in (4096, 8192, 32768)),
    *(Shape(1, 16, 2, keys, 256) for keys in (4096, 8192, 32768)),
    Shape(8, 32, 8, 4096, 128),
    Shape(1, 32, 32, 8192, 128),
    Shape(1, 64, 8, 8192, 64),
)
QUANTIZED = (Shape(1, 32, 8, 4096, 128), Shape(1, 32, 8, 32768, 128), Shape(1, 16, 2, 32768, 256))


TINY = (Shape(1, 4, 2, 200, 64), Shape(2, 2, 1, 70, 128))


def _make(m: Maker, shape: Shape) -> Call:
    batch, heads, kv_heads, keys, dim = shape
    q = m.normal(batch, heads, 1, dim, dtype="bfloat16")
    k, v = (m.normal(batch, kv_heads, keys, dim, dtype="bfloat16") for _ in range(2))
    return Call((q, k, v), {"scale": dim**-0.5})


def _make_quantized(m: Maker, shape: Shape, bits: int) -> Call:
    batch, heads, kv_heads, keys, dim = shape

    def cache() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        words = m.integers(-(1 << 31), 1 << 31, batch, kv_heads, keys, dim * bits // 32)
        scales = (m.normal(batch, kv_heads, keys, dim // 64, scale=0.1) + 1.0) * (4.0 / ((1 << bits) - 1))
        return words, scales.bfloat16(), m.normal(batch, kv_heads, keys, dim // 64, scale=0.1).sub(2.0).bfloat16()

    q = m.normal(batch, heads, 1, dim, dtype="bfloat16")
    return Call((q, cache(), cache()), {"scale": 0.5 * dim**-0.5, "bits": bits, "group_size": 64})


def _torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, **_rest: Any) -> torch.Tensor:
    return scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True)


def _repeated(call: Call) -> Call:
    q, k, v = call.args
    return Call((q, *(one.repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))), call.kwargs)


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    for shape in TINY if tiny else SHAPES:
        batch, heads, kv_heads, keys, dim = shape
        cost = attention_decode.OP.cost(attention_decode.Problem("bfloat16", batch, heads, kv_heads, 1, keys, dim, dim))
        yield Bench(
            op="attention_decode",
            name=f"bfloat16-{batch}x{heads}/{kv_heads}x{keys}x{dim}",
            make=functools.partial(_make, shape=shape),
            dtype="bfloat16",
            bytes=cost.bytes,
            flops=cost.flops,
            goals=(("of_floor", 0.75),) if keys == 32768 else (),
            rank=1 if batch == 1 and dim in {128, 256} else 2,
            peers={"sdpa": _torch, "sdpa, KV repeated": Peer(_torch, _repeated, same=True)},
            mlx=(
                "benchmarks.kernels.topics.attention_mlx:attention",
                {"shape": [batch, heads, kv_heads, 1, keys, dim], "mask": None},
            ),
        )
    for bits in (4, 8):
        for shape in TINY if tiny else QUANTIZED:
            batch, heads, kv_heads, keys, dim = shape
            problem = quantized_attention.Problem("bfloat16", batch, heads, kv_heads, 1, keys, dim, dim, bits, 64)
            cost = quantized_attention.OP.cost(problem)
            yield Bench(
                op="quantized_attention",
                name=f"bfloat16-{bits}bit-{batch}x{heads}/{kv_heads}x{keys}x{dim}",
                make=functools.partial(_make_quantized, shape=shape, bits=bits),
                dtype="bfloat16",
                bytes=cost.bytes,
                flops=cost.flops,
            )
