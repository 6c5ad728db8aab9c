"""The suite's cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size

Shape = tuple[int, int, int, int, int, int, int]  # B, H, KV, L, S, D, Dv


def _tensors(m: Maker, dtype: str, shape: Shape) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    b, h, kv, length, s, d, dv = shape
    return (
        m.normal(b, h, length, d, dtype=dtype),
        m.normal(b, kv, s, d, dtype=dtype),
        m.normal(b, kv, s, dv, dtype=dtype),
    )


def _case(
    name: str,
    dtype: str,
    shape: Shape,
    options: Callable[[Maker], dict[str, Any]] | None = None,
    *,
    size: Size = "small",
    compiled: bool = False,
    edges: tuple[str, ...] = (),
) -> Case:
    def make(m: Maker) -> Call:
        q, k, v = _tensors(m, dtype, shape)
        return Call((q, k, v), {"scale": shape[5] ** -0.5, **(options(m) if options else {})})

    return Case(f"{dtype}-{name}", make, dtype, size, compiled=compiled, edges=edges)


def _dims(dtype: str) -> Iterator[Case]:
    for dim in (64, 80, 96, 112, 128, 192, 256):
        yield _case(f"d{dim}", dtype, (1, 4, 1, 1, 70, dim, dim), size="tiny")
    yield _case("d40-v24", dtype, (1, 3, 3, 1, 19, 40, 24), size="tiny", edges=("odd",))
    yield _case("d5-v3", dtype, (2, 2, 1, 2, 9, 5, 3), size="tiny", edges=("odd",))
    yield _case("d192-v128", dtype, (1, 8, 2, 1, 130, 192, 128))
    yield _case("mla", dtype, (1, 20, 1, 1, 40, 576, 512))
    for implementation in ("split", "split_vector", "split_rows"):
        yield _case("d64-v40", dtype, (1, 6, 1, 1, 70, 64, 40), size="tiny").by(implementation)
    yield _case("one-key", dtype, (1, 2, 1, 1, 1, 64, 64), size="tiny", edges=("one",))
    yield _case("no-key", dtype, (1, 2, 1, 1, 0, 64, 64), size="tiny", edges=("empty",))
    yield _case("no-batch", dtype, (0, 2, 1, 1, 5, 64, 64), size="tiny", edges=("empty",))
    yield _case("heads-1-to-1", dtype, (2, 3, 3, 1, 300, 64, 64))
    yield _case("queries-16", dtype, (1, 4, 2, 16, 90, 64, 64), lambda _m: {"mask": "causal"})
    yield _case("queries-more-than-keys", dtype, (1, 2, 1, 7, 5, 64, 64), lambda _m: {"mask": "causal"}, size="tiny")


def _boolean(m: Maker, *shape: int) -> torch.Tensor:
    return m.integers(0, 3, *shape).to(torch.bool)


def _hidden_row(m: Maker) -> dict[str, Any]:
    mask = _boolean(m, 2, 4, 3, 200)
    mask[:, 1, 1] = False
    mask[:, :, :, :100] = False
    return {"mask": mask}


def _additive(m: Maker, dtype: str) -> dict[str, Any]:
    mask = m.normal(3, 200, dtype=dtype, scale=3.0)
    mask[:, 5:150] = float("-inf")
    mask[1, 160:] = torch.finfo(mask.dtype).min
    return {"mask": mask}


def _options(dtype: str) -> Iterator[Case]:
    shape: Shape = (2, 4, 2, 3, 200, 64, 64)
    yield _case("causal", dtype, shape, lambda _m: {"mask": "causal"})
    yield _case("boolean", dtype, shape, _hidden_row)
    yield _case("boolean-broadcast", dtype, shape, lambda m: {"mask": _boolean(m, 2, 1, 1, 200)})
    yield _case("additive", dtype, shape, lambda m: _additive(m, dtype))
    yield _case(
        "additive-nothing-seen", dtype, (1, 2, 1, 1, 40, 64, 64),
        lambda m: {"mask": m.of([[float("-inf")] * 40], dtype)}, size="tiny", edges=("nan",),
    )  # fmt: skip
    yield _case("sinks", dtype, shape, lambda m: {"sinks": m.normal(4, dtype=dtype, scale=2.0), "mask": "causal"})
    yield _case(
        "sinks-short", dtype, (2, 4, 2, 1, 20, 64, 64), lambda m: {"sinks": m.normal(4, dtype=dtype)}, size="tiny"
    )
    yield _case("soft-cap", dtype, shape, lambda _m: {"soft_cap": 1.5})
    yield _case("window", dtype, (1, 4, 2, 3, 300, 64, 64), lambda _m: {"window": 130, "mask": "causal"})
    yield _case("window-1", dtype, (1, 2, 2, 1, 50, 64, 64), lambda _m: {"window": 1}, size="tiny")
    yield _case("window-long", dtype, (1, 2, 2, 1, 50, 64, 64), lambda _m: {"window": 100}, size="tiny")
    yield _case("lengths", dtype, (4, 4, 2, 1, 260, 64, 64), lambda m: {"lengths": m.of([0, 1, 133, 260], "int32")})
    yield _case(
        "lengths-window-sinks", dtype, (3, 4, 1, 2, 260, 64, 64),
        lambda m: {
            "lengths": m.of([3, 200, 300], "int64"), "window": 70, "mask": "causal", "sinks": m.normal(4, dtype=dtype),
        },
    )  # fmt: skip


def _strided(dtype: str, *, last: bool) -> Case:
    def make(m: Maker) -> Call:
        q = m.normal(2, 3, 8, 64, dtype=dtype).transpose(1, 2)
        k = (
            m.normal(2, 64, 4, 256, dtype=dtype).permute(0, 2, 3, 1)
            if last
            else m.normal(2, 256, 4, 64, dtype=dtype).transpose(1, 2)
        )
        v = m.normal(2, 4, 300, 64, dtype=dtype)
        return Call((q, k[:, :, :201], v[:, :, 40:241]), {"scale": 0.125, "mask": "causal"})

    return Case(f"{dtype}-strided{'-keys-transposed' if last else ''}", make, dtype, "small", edges=("strides",))


def _edges(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        q, k, v = (
            m.normal(1, 2, 1, 64, dtype=dtype),
            m.normal(1, 1, 80, 64, dtype=dtype),
            m.normal(1, 1, 80, 64, dtype=dtype),
        )
        v[0, 0, 3, 5], v[0, 0, 70, 6], v[0, 0, :, 7] = float("nan"), float("inf"), 0.0
        k[0, 0, 77] = float("nan")
        mask = m.of([[True] * 80], "bool")
        return Call(
            (q, torch.where(m.of([[n == 77] for n in range(80)], "bool"), torch.zeros_like(k), k), v),
            {"scale": 0.1, "mask": mask},
        )

    return Case(f"{dtype}-nan-among-values", make, dtype, "tiny", edges=("nan",))


def _past_the_end(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        q, k, v = _tensors(m, dtype, (2, 4, 2, 1, 150, 64, 64))
        k[:, :, 100:], v[:, :, 100:] = float("nan"), float("inf")
        return Call((q, k, v), {"scale": 0.1, "lengths": m.of([100, 7], "int32")})

    return Case(f"{dtype}-garbage-past-the-end", make, dtype, "small", edges=("nan",))


def _huge_scores(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        q, k, v = _tensors(m, dtype, (1, 4, 1, 1, 200, 64, 64))
        return Call((q * 30, k * 30, v), {"scale": 1.0})

    return Case(f"{dtype}-huge-scores", make, dtype, "small")


def _large() -> Iterator[Case]:
    for dtype in ("bfloat16", "float16"):
        yield _case("32k-d128", dtype, (1, 32, 8, 1, 32768, 128, 128), size="large", compiled=True)
        yield _case("8k-d256", dtype, (1, 16, 2, 1, 8192, 256, 256), size="large", compiled=True)
        yield _case(
            "4k-d64-window",
            dtype,
            (2, 64, 8, 1, 4096, 64, 64),
            lambda m: {"window": 128, "sinks": m.normal(64)},
            size="large",
            compiled=True,
        )
        yield _case("4k-mla", dtype, (2, 128, 1, 1, 4096, 576, 512), size="large", compiled=True)
        yield _case(
            "4k-1-to-1",
            dtype,
            (1, 16, 16, 1, 4096, 128, 128),
            lambda m: {"lengths": m.of([3001], "int32")},
            size="large",
            compiled=True,
        )
        yield _case(
            "queries-8",
            dtype,
            (1, 32, 8, 8, 5001, 128, 128),
            lambda _m: {"mask": "causal"},
            size="large",
            compiled=True,
        )
    yield _case("32k-d128", "float32", (1, 8, 8, 1, 32768, 128, 128), size="large", compiled=True)
    for dim in (64, 128, 256):
        yield _case(f"4k-group-d{dim}", "float32", (1, 32, 4, 1, 4096, dim, dim), size="large", compiled=True)
    yield _case("4k-mla", "float32", (1, 64, 1, 1, 4096, 576, 512), size="large", compiled=True)
    # More than 2³¹ elements of keys: 64-bit addresses.
    yield _case("huge-cache", "bfloat16", (1, 2, 2, 1, 8_500_000, 128, 128), size="large")


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield from _dims(dtype)
        yield from _options(dtype)
        yield _strided(dtype, last=False)
        yield _strided(dtype, last=True)
        yield _edges(dtype)
        yield _past_the_end(dtype)
        yield _huge_scores(dtype)
    yield from _large()
