"""Attention: prefill and gradients; torch's back ends beside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from benchmarks.kernels.bench import Bench, Peer
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from rocmend.kernels.ops.attention.attention import OP, Problem
from rocmend.kernels.ops.attention.attention.cases import BACKWARD
from rocmend.kernels.ops.attention.attention.reference import attention, attention_backward
from rocmend.kernels.suite import Call, Maker
from rocmend.kernels.suite.compare import compare

BACKENDS = {
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
}
GOALS = (("of_peer:sdpa", 0.6),)
TWIN = "benchmarks.kernels.topics.attention_mlx:attention"
ROWS = 128


class Shape(NamedTuple):
    """Heads, KV heads, queries and keys, head dimension, of one causal sequence."""

    heads: int
    kv_heads: int
    length: int
    dim: int


FORWARD = (
    *(Shape(32, 8, length, 128) for length in (2048, 4096, 8192, 16384)),
    *(Shape(16, 4, length, 256) for length in (2048, 4096, 8192, 16384)),
    Shape(32, 8, 4096, 64),
    Shape(32, 8, 4096, 96),
    Shape(16, 4, 4096, 192),
)


TINY = (Shape(4, 2, 40, 64), Shape(2, 1, 20, 128))


def _repeated(call: Call) -> Call:
    """Return the arguments for a back end that knows no groups of heads: each KV head as often as it is used."""
    *first, q, k, v = call.args
    group = q.shape[1] // k.shape[1]
    return Call((*first, q, *(one.repeat_interleave(group, 1) for one in (k, v))), call.kwargs)


def _peer(name: str, function: Callable[..., Any], *, same: bool) -> Callable[..., Any] | Peer:
    return Peer(function, _repeated, same=same) if name == "sdpa-efficient" else function


def _make(m: Maker, shape: Shape, *, backward: bool) -> Call:
    heads, kv_heads, length, dim = shape
    q, k, v = (m.normal(1, n, length, dim, dtype="bfloat16") for n in (heads, kv_heads, kv_heads))
    options = {"scale": dim**-0.5, "mask": "causal"}
    if not backward:
        return Call((q, k, v), {**options, "return_lse": True})  # torch's function cannot: the kernel is taken
    from rocmend.kernels.ops.attention.attention.host import run

    out, lse = run(q, k, v, **options, return_lse=True)
    return Call((m.normal(1, heads, length, dim, dtype="bfloat16"), q, k, v), {**options, "out": out, "lse": lse})


def _gate_forward(call: Call, out: Any) -> str | None:
    """Compare the first and the last queries: all scores in float64 would not fit in memory."""
    q, k, v = (one.double() for one in call.args)
    scale = call.kwargs["scale"]
    last = attention(q[:, :, -ROWS:], k, v, scale=scale, mask="causal")
    first = attention(*(one[:, :, :ROWS] for one in (q, k, v)), scale=scale, mask="causal")
    for ours, wanted in ((out[0][:, :, -ROWS:], last), (out[0][:, :, :ROWS], first)):
        found = compare(ours, wanted, OP.tolerance["bfloat16"])
        if not found.ok:
            return found.detail
    return None


def _gate_backward(call: Call, out: Any) -> str | None:
    """Compare the first KV head's part: heads do not meet."""
    group = call.args[1].shape[1] // call.args[2].shape[1]
    parts = [one[:, : group if index < 2 else 1].double() for index, one in enumerate(call.args)]
    wanted = attention_backward(*parts, scale=call.kwargs["scale"], mask="causal")[:3]
    for ours, want in zip(out[:3], wanted, strict=True):
        found = compare(ours[:, : want.shape[1]], want, BACKWARD["bfloat16"])
        if not found.ok:
            return found.detail
    return None


def _torch(backend: SDPBackend) -> Callable[..., torch.Tensor]:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, **_rest: Any) -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)

    return call


def _torch_backward(backend: SDPBackend) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Call torch's forward and backward: its backward alone cannot be called."""

    def call(
        grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, **_rest: Any
    ) -> tuple[torch.Tensor, ...]:
        q, k, v = leaves = [one.detach().requires_grad_() for one in (q, k, v)]
        with sdpa_kernel(backend):
            out = scaled_dot_product_attention(
                leaves[0], leaves[1], leaves[2], is_causal=True, scale=scale, enable_gqa=True
            )
            return torch.autograd.grad(out, leaves, grad)

    return call


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    for shape in TINY if tiny else FORWARD:
        heads, kv_heads, length, dim = shape
        cost = OP.cost(Problem("bfloat16", 1, heads, kv_heads, length, length, dim, dim, "causal"))
        yield Bench(
            op="attention",
            name=f"bfloat16-causal-{heads}/{kv_heads}x{length}x{dim}",
            make=functools.partial(_make, shape=shape, backward=False),
            dtype="bfloat16",
            bytes=cost.bytes,
            flops=cost.flops,
            rank=1 if tiny or dim in {128, 256} else 2,
            goals=GOALS if dim in {128, 256} else (),
            peers={name: _peer(name, _torch(backend), same=True) for name, backend in BACKENDS.items()},
            mlx=(TWIN, {"shape": [1, heads, kv_heads, length, length, dim], "mask": "causal"}),
            gate=_gate_forward,
        )
    for shape in TINY if tiny else (Shape(32, 8, 4096, 128), Shape(16, 4, 4096, 256), Shape(32, 8, 4096, 64)):
        heads, kv_heads, length, dim = shape
        cost = OP.cost(Problem("bfloat16", 1, heads, kv_heads, length, length, dim, dim, "causal"))
        yield Bench(
            op="attention",
            name=f"bfloat16-backward-{heads}/{kv_heads}x{length}x{dim}",
            make=functools.partial(_make, shape=shape, backward=True),
            dtype="bfloat16",
            bytes=2 * cost.bytes,
            flops=2.5 * cost.flops,
            function="attention_backward",
            rank=2,
            peers={
                f"{name} with its forward": _peer(name, _torch_backward(backend), same=False)
                for name, backend in BACKENDS.items()
            },
            gate=_gate_backward,
        )
