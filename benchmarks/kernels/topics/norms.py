"""Normalisations, softmax, losses, rotary embeddings, gated units: ops that the memory's speed bounds."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from benchmarks.kernels.bench import Bench, compiled
from torch.nn import functional as F  # noqa: N812  torch's documentation calls it F

from rocmend.bench.workloads.kernels import add_rms_norm, cross_entropy, rms_norm, swiglu
from rocmend.kernels.suite import Call, Maker

EPS = 1e-5
SIZES = ((8, 4096), (2048, 4096), (16384, 4096), (16384, 8192), (4096, 16384), (262144, 128))
TINY = ((8, 64), (5, 128), (33, 40))
GOALS = (("of_floor", 0.8), ("of_peer:torch.compile", 1.0))
FIRST = (["16384x4096"], ["262144x128"], ["4096x14336"], ["4x32x4096x128"])
"""Sizes that are measured before the others."""
FROM_BYTES = 64e6
"""From where the goals hold."""
Function = Callable[..., Any]


def _layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def _softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.softmax(x, axis)


def _logsumexp(x: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.logsumexp(x.float(), axis).to(x.dtype)


def _rms_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    wide, upper = x.float(), grad.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    normal = wide * scale
    inner = upper * weight.float()
    dx = scale * (inner - normal * (inner * normal).mean(-1, keepdim=True))
    return dx.to(x.dtype), (upper * normal).sum(0).to(weight.dtype)


def _bench(
    op: str,
    name: str,
    make: Callable[[Maker], Call],
    moved: float,
    peer: Function,
    *,
    function: str | None = None,
    dtype: str = "bfloat16",
    **more: Any,
) -> Bench:
    peers = {"torch": peer, "torch.compile": compiled(peer)}
    large = moved >= 2 * FROM_BYTES  # read and written
    more = {"rank": 1 if large and name.split("-")[1:2] in FIRST else 2, "goals": GOALS if large else (), **more}
    return Bench(op=op, name=name, make=make, dtype=dtype, bytes=moved, peers=peers, function=function, **more)


def _norms(dtype: str, rows: int, columns: int) -> Iterator[Bench]:
    width = 4 if dtype == "float32" else 2
    size = float(rows * columns * width)
    name = f"{dtype}-{rows}x{columns}"

    def make(m: Maker, *, matrices: int, vectors: int) -> Call:
        tensors = [m.normal(rows, columns, dtype=dtype) for _ in range(matrices)]
        return Call((*tensors, *(m.normal(columns, dtype=dtype) for _ in range(vectors)), EPS))

    mlx = (
        "benchmarks.kernels.topics.norms_mlx:rms_norm",
        {"rows": rows, "columns": columns, "dtype": dtype, "eps": EPS},
    )
    yield _bench(
        "rms_norm", name, functools.partial(make, matrices=1, vectors=1), 2 * size, rms_norm, dtype=dtype, mlx=mlx
    )
    if dtype != "bfloat16":
        return
    yield _bench("layer_norm", name, functools.partial(make, matrices=1, vectors=2), 2 * size, _layer)
    yield _bench("add_rms_norm", name, functools.partial(make, matrices=2, vectors=1), 4 * size, add_rms_norm)
    yield _bench(
        "softmax",
        name,
        lambda m: Call((m.normal(rows, columns, dtype=dtype), -1)),
        2 * size,
        _softmax,
        mlx=("benchmarks.kernels.topics.norms_mlx:softmax", {"rows": rows, "columns": columns, "dtype": dtype}),
    )
    yield _bench(
        "rms_norm",
        f"{name}-gradients",
        functools.partial(make, matrices=2, vectors=1),
        3 * size,
        _rms_backward,
        function="rms_norm_backward",
        rank=2,
        reference="rocmend.kernels.ops.rowwise.rms_norm.reference:rms_norm_backward",
        tolerance=_gradient_tolerance(),
    )


def _gradient_tolerance() -> Any:
    from rocmend.kernels.ops.rowwise.rms_norm.cases import GRADIENT

    return GRADIENT["bfloat16"]


def _losses(*, tiny: bool) -> Iterator[Bench]:
    for rows, classes in ((3, 300), (7, 64)) if tiny else ((512, 152_064), (8192, 32_000)):
        size = 2.0 * rows * classes

        def logits(m: Maker, rows: int = rows, classes: int = classes) -> torch.Tensor:
            return m.normal(rows, classes, dtype="bfloat16", scale=3.0)

        def labelled(m: Maker, rows: int = rows, classes: int = classes) -> Call:
            return Call((m.normal(rows, classes, dtype="bfloat16"), m.integers(0, classes, rows, dtype="int64")))

        name = f"bfloat16-{rows}x{classes}"
        loss: dict[str, Any] = {"rank": 1, "goals": GOALS if size >= FROM_BYTES else ()}
        yield _bench("logsumexp", name, lambda m, f=logits: Call((f(m), -1)), size, _logsumexp, **loss)  # type: ignore[misc]  # a default argument has no type
        yield _bench("cross_entropy", name, labelled, size, cross_entropy, dtype="float32", **loss)


def _rope(x: torch.Tensor, dims: int, *, traditional: bool, offset: int) -> torch.Tensor:
    length = x.shape[-2]
    inverse = 10000.0 ** (-torch.arange(0, dims, 2, device=x.device, dtype=torch.float32) / dims)
    at = torch.arange(offset, offset + length, device=x.device, dtype=torch.float32)
    turn = at[:, None] * inverse
    cos, sin = torch.cos(turn), torch.sin(turn)
    wide = x.float()
    if traditional:
        first, second = wide[..., 0::2], wide[..., 1::2]
        both = torch.stack((first * cos - second * sin, first * sin + second * cos), -1)
        return both.flatten(-2).to(x.dtype)
    first, second = wide.chunk(2, -1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1).to(x.dtype)


def _others(*, tiny: bool) -> Iterator[Bench]:
    inner, rows = (96, 5) if tiny else (14336, 4096)
    batch, length, many = (2, 6, 3) if tiny else (4, 4096, 32)

    def halves(m: Maker) -> Call:
        both = m.normal(rows, 2 * inner, dtype="bfloat16")
        return Call((both[:, :inner], both[:, inner:]))

    def heads(m: Maker, *, traditional: bool) -> Call:
        x = m.normal(batch, length, many, 128, dtype="bfloat16").transpose(1, 2)
        return Call((x, 128), {"traditional": traditional, "offset": 5})

    yield _bench("gated_linear_unit", f"bfloat16-{rows}x{inner}-halves", halves, 3.0 * rows * inner * 2, swiglu)
    for traditional in (False, True):
        yield _bench(
            "rope",
            f"bfloat16-{batch}x{many}x{length}x128{'-traditional' if traditional else ''}",
            functools.partial(heads, traditional=traditional),
            2.0 * batch * many * length * 128 * 2,
            _rope,
            mlx=(
                "benchmarks.kernels.topics.norms_mlx:rope",
                {"shape": [batch, length, many, 128], "traditional": traditional},
            ),
        )


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    sizes = TINY if tiny else SIZES
    for rows, columns in sizes:
        yield from _norms("bfloat16", rows, columns)
    for dtype in ("float16", "float32"):
        yield from _norms(dtype, *sizes[2])
    yield from _losses(tiny=tiny)
    yield from _others(tiny=tiny)
