"""The suite's cases."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, Size

# Weights and their gradients are rounded to the type between products, and gradients cancel.
BACKWARD = {
    "float32": Tolerance(ulps=4, scaled=1e-5),
    "float16": Tolerance(ulps=1, scaled=2e-3),
    "bfloat16": Tolerance(ulps=1, scaled=1.5e-2),
}


class Shape(NamedTuple):
    """B, H, KV, L, S, D, Dv."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int
    dim_v: int


class Options(NamedTuple):
    """What is asked: mask ``none``, ``causal``, ``boolean``, ``additive`` or ``blind`` (rows that see nothing)."""

    mask: str = "none"
    sinks: bool = False
    cap: float | None = None
    window: int | None = None
    strides: str = "contiguous"


def _tensors(m: Maker, shape: Shape, dtype: str, strides: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    b, h, kv, length, keys, dim, dim_v = shape
    if strides == "rows":  # [B, length, heads, D], as projections leave it
        q, k, v = (m.normal(b, n, heads, d, dtype=dtype).transpose(1, 2)
                   for n, heads, d in ((length, h, dim), (keys, kv, dim), (keys, kv, dim_v)))  # fmt: skip
        return q, k, v
    if strides == "columns":  # the head dimension is not the fastest
        q, k, v = (m.normal(b, heads, d, n, dtype=dtype).transpose(2, 3)
                   for n, heads, d in ((length, h, dim), (keys, kv, dim), (keys, kv, dim_v)))  # fmt: skip
        return q, k, v
    if strides == "cache":  # a cache longer than what is filled, keys and values of one buffer, a batch expanded
        buffer = m.normal(1, kv, keys + 13, dim + dim_v + 3, dtype=dtype).expand(b, -1, -1, -1)
        q = m.normal(b, h + 1, length * 2, dim, dtype=dtype)[:, 1:, ::2]
        return q, buffer[:, :, 5 : keys + 5, :dim], buffer[:, :, 5 : keys + 5, dim + 1 : dim + 1 + dim_v]
    return (
        m.normal(b, h, length, dim, dtype=dtype),
        m.normal(b, kv, keys, dim, dtype=dtype),
        m.normal(b, kv, keys, dim_v, dtype=dtype),
    )


def _mask(m: Maker, shape: Shape, dtype: str, mask: str) -> torch.Tensor | str | None:
    b, h, length, keys = shape.batch, shape.heads, shape.queries, shape.keys
    if mask == "boolean":
        seen = m.integers(0, 3, b, 1, length, keys) > 0
        if m.device.type != "meta" and keys:
            seen[..., 0] = True
        return seen
    if mask == "padding":  # one row for all queries
        return m.integers(0, 3, b, 1, 1, keys) > 0
    if mask == "blind":
        return m.integers(0, 4, length, 1).expand(length, keys) > 0
    if mask == "additive":
        return m.normal(h, length, keys, dtype=dtype).transpose(0, 1).contiguous().transpose(0, 1)
    if mask == "lowest":
        values = m.integers(0, 3, length, keys).to(torch.float32)
        return torch.where(values == 0, torch.finfo(torch.float32).min, torch.where(values == 1, float("-inf"), 0.25))
    return "causal" if mask == "causal" else None


def _make(m: Maker, shape: Shape, dtype: str, options: Options, *, backward: bool) -> Call:
    q, k, v = _tensors(m, shape, dtype, options.strides)
    kwargs = {
        "scale": shape.dim**-0.5,
        "mask": _mask(m, shape, dtype, options.mask),
        "sinks": m.normal(shape.heads) if options.sinks else None,
        "soft_cap": options.cap,
        "window": options.window,
    }
    if not backward:
        # The kernel of the file, not the one that splits the keys for few queries.
        return Call((q, k, v), {**kwargs, "return_lse": True} if shape.keys and options.mask != "lowest" else kwargs)
    grad = m.normal(shape.batch, shape.queries, shape.heads, shape.dim_v, dtype=dtype).transpose(1, 2)
    return Call((grad, q, k, v), kwargs)


def _case(
    dtype: str,
    shape: Shape,
    options: Options | None = None,
    *,
    backward: bool = False,
    size: Size = "small",
    compiled: bool = False,
    edges: tuple[str, ...] = (),
) -> Case:
    options = options or Options()
    asked = {
        name: value for name, value in options._asdict().items() if value not in (False, None, "none", "contiguous")
    }
    told = [name if value is True else f"{name}{value}" if name in ("cap", "window") else str(value)
            for name, value in asked.items()]  # fmt: skip
    name = "-".join([dtype, *(["backward"] if backward else []), "x".join(map(str, shape)), *told])
    return Case(
        name,
        functools.partial(_make, shape=shape, dtype=dtype, options=options, backward=backward),
        dtype,
        size,
        function="attention_backward" if backward else None,
        reference=f"{__package__}.reference:attention_backward" if backward else None,
        compiled=compiled,
        edges=edges + (("strides",) if options.strides != "contiguous" else ()),
        tolerance=BACKWARD[dtype] if backward else None,
    )


OPTIONS = (
    Options(),
    Options("causal"),
    Options("boolean", strides="rows"),
    Options("additive", sinks=True),
    Options("causal", window=19),
    Options("causal", cap=3.0, sinks=True, strides="cache"),
)
# Which of them are differentiated: the interpreter takes its time.
GRADIENTS = {"float32": (2, 4, 5), "float16": (1,), "bfloat16": (3,)}


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for number, options in enumerate(OPTIONS):
            yield _case(dtype, Shape(1, 2, 1, 35, 50, 16, 16), options, size="tiny")
            if number in GRADIENTS[dtype]:
                yield _case(dtype, Shape(1, 2, 1, 33, 40, 16, 16), options, size="tiny", backward=True)
        yield from _dimensions(dtype)
        yield from _large(dtype)
        yield from _compiled(dtype)
    yield from _edges()


def _dimensions(dtype: str) -> Iterator[Case]:
    """Head dimensions: powers of two, sums of two, neither; values of another."""
    for dim in (64, 80, 256) if dtype == "float16" else (64, 80, 96, 112, 128, 192, 256):
        yield _case(dtype, Shape(1, 1, 1, 17, 33, dim, dim), Options("causal"))
    for dim, dim_v in ((1, 1), (5, 100), (192, 128), (24, 40), (48, 144)):
        yield _case(dtype, Shape(1, 1, 1, 9, 21, dim, dim_v), Options("causal"), edges=("odd",))
    dim, dim_v = {"float32": (24, 40), "float16": (80, 80), "bfloat16": (192, 128)}[dtype]
    yield _case(dtype, Shape(1, 2, 1, 9, 21, dim, dim_v), Options("causal"), backward=True, edges=("odd",))
    yield _case(dtype, Shape(1, 1, 1, 5, 20, 576, 512), edges=("odd",))


def _edges() -> Iterator[Case]:
    dtype = "float32"
    for shape in (Shape(1, 2, 1, 0, 5, 16, 16), Shape(1, 2, 1, 3, 0, 16, 16), Shape(0, 2, 1, 3, 4, 16, 16)):
        for backward in (False, True):
            yield _case(dtype, shape, size="tiny", edges=("empty",), backward=backward)
    for shape in (Shape(1, 1, 1, 1, 1, 16, 16), Shape(3, 5, 5, 1, 40, 16, 16), Shape(2, 3, 1, 33, 1, 16, 16)):
        yield _case(dtype, shape, Options("causal"), size="tiny", edges=("one",))
    blind = Shape(1, 2, 1, 40, 20, 16, 16)
    for options in (Options("causal"), Options("blind"), Options("blind", sinks=True), Options("causal", window=7)):
        yield _case(dtype, blind, options, size="tiny", edges=("masked",))
    for options in (Options("causal"), Options("blind", sinks=True)):
        yield _case(dtype, blind, options, size="tiny", edges=("masked",), backward=True)
    yield _case(dtype, Shape(1, 2, 1, 30, 50, 16, 16), Options("lowest"), size="tiny", edges=("masked",))
    yield _case(dtype, Shape(2, 4, 2, 17, 41, 16, 24), Options("causal", strides="columns"), size="tiny")
    yield _case(dtype, Shape(2, 2, 1, 9, 21, 16, 24), Options("padding", strides="cache"), size="tiny", backward=True)
    for window in (1, 16, 33):
        yield _case(dtype, Shape(1, 1, 1, 80, 80, 16, 16), Options("causal", window=window), size="tiny")
    yield _case(dtype, Shape(1, 1, 1, 70, 70, 16, 16), Options("causal", window=20), size="tiny", backward=True)


def _compiled(dtype: str) -> Iterator[Case]:
    """One of each class of head dimension, as models have them; not run, for the reference stores every score."""
    dims = {"bfloat16": (64, 96, 128, 192, 256, 512), "float16": (128,), "float32": (128, 192, 256, 512)}[dtype]
    for dim in dims:
        shape = Shape(1, 8, 2, 512, 512, dim, dim)
        yield _case(dtype, shape, Options("causal"), size="large", compiled=True)
        yield _case(dtype, shape, Options("causal"), size="large", compiled=True, backward=True)
    if dtype == "bfloat16":
        shape = Shape(1, 8, 2, 512, 512, 128, 128)
        others = (Options("additive"), Options("causal", True, 30.0, 128))
        for options in others:
            yield _case(dtype, shape, options, size="large", compiled=True)
            yield _case(dtype, shape, options, size="large", compiled=True, backward=True)
        for dim, dim_v in ((80, 80), (576, 512)):
            yield _case(dtype, Shape(1, 8, 2, 512, 512, dim, dim_v), Options("causal"), size="large", compiled=True)


def _large(dtype: str) -> Iterator[Case]:
    if dtype == "float32":
        return
    yield _case(dtype, Shape(1, 8, 2, 2048, 2048, 128, 128), Options("causal", strides="rows"), size="large")
    yield _case(dtype, Shape(2, 4, 1, 1000, 1500, 256, 256), Options("boolean", sinks=True), size="large")
    yield _case(dtype, Shape(1, 4, 2, 1500, 1500, 112, 112), Options("causal", window=300), size="large", backward=True)
