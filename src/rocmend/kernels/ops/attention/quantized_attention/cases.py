"""The suite's cases."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.common.formats import AFFINE_GROUPS
from rocmend.kernels.suite import Call, Case, Maker, Size

Shape = tuple[int, int, int, int, int, int, int]  # B, H, KV, L, S, D, Dv
Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _codes(m: Maker, dtype: str, rows: tuple[int, int, int], dim: int, bits: int, group: int) -> Quantized:
    """Return random words, and scales and biases so that values are spread over about ±2."""
    words = m.integers(-(1 << 31), 1 << 31, *rows, dim * bits // 32, dtype="int32")
    scales = m.normal(*rows, dim // group, dtype="float32", scale=0.2) + 1.0
    step = 4.0 / ((1 << bits) - 1)
    biases = m.normal(*rows, dim // group, dtype="float32", scale=0.1) - 2.0
    return words, (scales * step).to(getattr(torch, dtype)), biases.to(getattr(torch, dtype))


def _case(
    name: str,
    dtype: str,
    shape: Shape,
    bits: int,
    group: int,
    options: Callable[[Maker], dict[str, Any]] | None = None,
    *,
    size: Size = "small",
    compiled: bool = False,
    edges: tuple[str, ...] = (),
) -> Case:
    b, h, kv, queries, s, d, dv = shape

    def make(m: Maker) -> Call:
        return Call(
            (
                m.normal(b, h, queries, d, dtype=dtype),
                _codes(m, dtype, (b, kv, s), d, bits, group),
                _codes(m, dtype, (b, kv, s), dv, bits, group),
            ),
            {"scale": 0.5 * d**-0.5, "bits": bits, "group_size": group, **(options(m) if options else {})},
        )

    return Case(f"{dtype}-{name}-{bits}bit-g{group}", make, dtype, size, compiled=compiled, edges=edges)


def _additive(m: Maker, dtype: str) -> dict[str, Any]:
    return {"mask": m.normal(1, 100, dtype=dtype)}


def _sliced(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        k, v = (_codes(m, dtype, (1, 2, 256), 64, 8, 64) for _ in range(2))
        k, v = ((words[:, :, :130], scales[:, :, :130], biases[:, :, :130]) for words, scales, biases in (k, v))
        q = m.normal(1, 5, 4, 64, dtype=dtype).transpose(1, 2)
        return Call((q, k, v), {"scale": 0.1, "mask": "causal"})

    return Case(f"{dtype}-slice-of-a-cache", make, dtype, "small", edges=("strides",))


def _few(dtype: str) -> Iterator[Case]:
    """Few rows, as in a step of decoding, of dimensions that Hopper's own kernel takes; one part and many parts."""
    for bits in (4, 8):
        yield _case("few-d128", dtype, (2, 8, 2, 1, 264, 128, 128), bits, 64)
        yield _case("few-d256", dtype, (1, 16, 2, 1, 200, 256, 256), bits, 64)
        yield _case("few-one-part", dtype, (1, 3, 1, 1, 24, 128, 128), bits, 64)
        yield _case("few-queries", dtype, (1, 6, 2, 2, 136, 128, 128), bits, 64)
        yield _case(
            "few-lengths", dtype, (4, 4, 2, 1, 328, 128, 128), bits, 64,
            lambda m: {"lengths": m.of([0, 1, 77, 328], "int32")},
        )  # fmt: skip
        yield _behind_the_end(dtype, bits)


def _behind_the_end(dtype: str, bits: int) -> Case:
    def make(m: Maker) -> Call:
        k, v = (_codes(m, dtype, (1, 2, 264), 128, bits, 64) for _ in range(2))
        for _, scales, biases in (k, v):
            scales[:, :, 201:], biases[:, :, 201:] = float("nan"), float("inf")
        q = m.normal(1, 8, 1, 128, dtype=dtype)
        return Call((q, k, v), {"scale": 0.04, "bits": bits, "group_size": 64, "lengths": m.of([201], "int32")})

    return Case(f"{dtype}-garbage-past-the-end-{bits}bit", make, dtype, "small", edges=("nan",))


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each width and group of codes for each head dimension, decoding and with many queries."""
    for bits in (2, 4, 8):
        for group in AFFINE_GROUPS:
            for dtype in ("bfloat16", "float32"):
                for dim in (dim for dim in (64, 128, 256) if dim >= group):
                    for queries in (1, 512):
                        name = f"d{dim}-{queries}"
                        shape = (1, 32, 8, queries, 8192, dim, dim)
                        yield _case(name, dtype, shape, bits, group, size="large", compiled=True)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for bits in (2, 4, 8):
            yield _case("d64", dtype, (1, 4, 1, 1, 70, 64, 64), bits, 32, size="tiny")
            yield _case("d128", dtype, (1, 4, 2, 1, 150, 128, 128), bits, 64)
        for implementation in ("split", "split_vector", "split_rows"):
            yield _case("d64-v128", dtype, (1, 6, 1, 1, 70, 64, 128), 4, 32, size="tiny").by(implementation)
        yield _case("d96-v64", dtype, (1, 2, 2, 1, 41, 96, 64), 4, 32, size="tiny", edges=("odd",))
        yield _case("d256", dtype, (1, 8, 1, 1, 60, 256, 256), 8, 128)
        yield _case("one-key", dtype, (1, 2, 1, 1, 1, 64, 64), 8, 64, size="tiny", edges=("one",))
        yield _case("no-key", dtype, (1, 2, 1, 1, 0, 64, 64), 8, 64, size="tiny", edges=("empty",))
        yield _case("prefill", dtype, (1, 4, 2, 50, 70, 64, 64), 4, 64, lambda _m: {"mask": "causal"})
        yield _case("more-queries-than-keys", dtype, (1, 2, 1, 9, 5, 64, 64), 8, 64, lambda _m: {"mask": "causal"})
        yield _case(
            "boolean",
            dtype,
            (2, 4, 2, 2, 100, 64, 64),
            8,
            64,
            lambda m: {"mask": m.integers(0, 2, 2, 1, 2, 100).bool()},
        )
        yield _case("additive", dtype, (2, 4, 2, 1, 100, 64, 64), 4, 64, functools.partial(_additive, dtype=dtype))
        yield _case(
            "lengths", dtype, (3, 2, 2, 1, 130, 64, 64), 4, 64, lambda m: {"lengths": m.of([0, 77, 130], "int32")}
        )
        yield _sliced(dtype)
        if dtype != "float32":
            yield from _few(dtype)
    for dtype in ("bfloat16", "float16"):
        for bits in (4, 8):
            yield _case("32k", dtype, (1, 32, 8, 1, 32768, 128, 128), bits, 64, size="large", compiled=True)
            yield _case("8k-d256", dtype, (1, 16, 2, 1, 8192, 256, 256), bits, 64, size="large", compiled=True)
            yield _case(
                "prefill-512", dtype, (1, 32, 8, 512, 1024, 128, 128), bits, 64, lambda _m: {"mask": "causal"},
                size="large", compiled=True,
            )  # fmt: skip
    yield _case("4k", "float32", (1, 8, 8, 1, 4096, 128, 128), 4, 64, size="large", compiled=True)
    yield _case("4k-group", "float32", (1, 32, 4, 1, 4096, 128, 128), 4, 64, size="large", compiled=True)
    yield _case("4k-group-d256", "float32", (1, 32, 4, 1, 4096, 256, 256), 8, 64, size="large", compiled=True)
