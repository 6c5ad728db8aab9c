"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, Size, sizes

Shape = tuple[int, int, int, int]  # B, T, M, N


def _inputs(m: Maker, dtype: str, shape: Shape, *, full: bool) -> tuple[tuple[Any, ...], Tensor | None]:
    batch, times, channels, n = shape
    dt = torch.nn.functional.softplus(m.normal(batch, times, channels) - 2.0).to(getattr(torch, dtype))
    a = -torch.exp(m.normal(channels, n))
    b, c = (m.normal(batch, times, n, dtype=dtype) for _ in range(2))
    given = (m.normal(batch, times, channels, dtype=dtype), dt, a, b, c, m.normal(channels) if full else None)
    return given, m.normal(batch, channels, n) if full else None


def _case(dtype: str, shape: Shape, *, full: bool = True, size: Size = "small", compiled: bool = False) -> Case:
    def make(m: Maker) -> Call:
        given, state = _inputs(m, dtype, shape, full=full)
        return Call(given, {"state": state})

    name = f"{dtype}-{sizes(shape)}{'-plain' * (not full)}"
    return Case(name, make, dtype, size, compiled=compiled)


def _backward(dtype: str, shape: Shape, *, full: bool = True, size: Size = "small", compiled: bool = False) -> Case:
    batch, times, channels, n = shape

    def make(m: Maker) -> Call:
        given, state = _inputs(m, dtype, shape, full=full)
        grads = (m.normal(batch, times, channels, dtype=dtype), m.normal(batch, channels, n) if full else None)
        return Call((*given, state, *grads))

    # Sums over batch, channels or times of products of either sign, in fp32.
    return Case(
        f"{dtype}-backward-{sizes(shape)}{'-plain' * (not full)}", make, dtype, size,
        "selective_scan_gradients", compiled=compiled,
        tolerance=Tolerance(16 if dtype == "float32" else 0.6, 1e-5),
    )  # fmt: skip


def _strided(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        both = m.normal(2, 21, 96, dtype=dtype)
        given, state = _inputs(m, dtype, (2, 21, 32, 16), full=True)
        # x, B and C are slices of projections, as models have them.
        return Call((both[:, :, :32], given[1].transpose(1, 2).contiguous().transpose(1, 2), given[2],
                     both[:, :, 64:80], both[:, :, 80:], given[5]), {"state": state})  # fmt: skip

    return Case(f"{dtype}-strided", make, dtype, "small", edges=("strides",))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (2, 1, 40, 16), size="tiny")
        yield _case(dtype, (1, 3, 9, 5), full=False, size="tiny")
        yield _case(dtype, (1, 31, 20, 16), size="tiny")
        yield _case(dtype, (1, 38, 70, 16))
        yield _case(dtype, (1, 33, 33, 8), full=False)
        yield _case(dtype, (1, 0, 8, 16), size="tiny")
        yield _case(dtype, (0, 4, 8, 16), size="tiny")
        yield _strided(dtype)
        yield _backward(dtype, (2, 6, 20, 16), size="tiny")
        yield _backward(dtype, (1, 33, 40, 8))
        yield _backward(dtype, (1, 5, 20, 16), full=False, size="tiny")
        yield _case(dtype, (1, 1024, 5120, 16), size="large", compiled=True)
        yield _case(dtype, (8, 1, 5120, 16), size="large", compiled=True)
        yield _backward(dtype, (1, 300, 2048, 16), size="large", compiled=True)
