"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, Size

DTYPES = ("float32", "float16", "bfloat16")


def _case(
    dtype: str,
    shape: tuple[int, int, int],
    taps: int,
    *,
    bias: bool = True,
    state: bool = True,
    silu: bool = True,
    size: Size = "small",
    edges: bool = False,
    compiled: bool = False,
) -> Case:
    batch, times, channels = shape

    def make(m: Maker) -> Call:
        x = m.edges(*shape, dtype=dtype) if edges else m.normal(*shape, dtype=dtype)
        # Products of the largest number overflow on the way; infinities among the inputs stay.
        x = torch.where(x.isfinite() & (x.abs() > 1e4), 1.0, x).to(x.dtype) if edges else x
        options = {
            "state": m.normal(batch, taps - 1, channels, dtype=dtype) if state else None,
            "activation": "silu" if silu else None,
        }
        return Call(
            (x, m.normal(channels, taps, dtype=dtype), m.normal(channels, dtype=dtype) if bias else None), options
        )

    marks = "".join(
        f"-{mark}" for mark, on in (("bias", bias), ("state", state), ("silu", silu), ("edges", edges)) if on
    )
    return Case(f"{dtype}-{batch}x{times}x{channels}-k{taps}{marks}", make, dtype, size, compiled=compiled)


def _backward(
    dtype: str, shape: tuple[int, int, int], taps: int, *, full: bool, size: Size = "small", compiled: bool = False
) -> Case:
    batch, times, channels = shape

    def make(m: Maker) -> Call:
        x, weight = m.normal(*shape, dtype=dtype), m.normal(channels, taps, dtype=dtype)
        bias = m.normal(channels, dtype=dtype) if full else None
        state = m.normal(batch, taps - 1, channels, dtype=dtype) if full else None
        after = m.normal(batch, taps - 1, channels, dtype=dtype) if full else None
        return Call((x, weight, bias, state, "silu" if full else None, m.normal(*shape, dtype=dtype), after))

    # Sums over batch and time of products of either sign, in fp32.
    ulps = 16 if dtype == "float32" else 0.6
    return Case(
        f"{dtype}-backward-{batch}x{times}x{channels}-k{taps}{'-full' if full else ''}", make, dtype, size,
        "depthwise_conv1d_gradients", compiled=compiled, tolerance=Tolerance(ulps, 2e-6),
    )  # fmt: skip


def _strided(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(2, 40, 30, dtype=dtype).transpose(1, 2)[:, ::2]
        state = m.normal(2, 40, 3, dtype=dtype).transpose(1, 2)
        return Call((x, m.normal(4, 40, dtype=dtype).t()), {"state": state})

    return Case(f"{dtype}-strided", make, dtype, "tiny", edges=("strides",))


def _far() -> Case:
    def make(m: Maker) -> Call:
        # More than 2³¹ elements between the first time and the last: 64-bit addresses.
        times, stride = 10, 270_000_000
        room = torch.empty((times - 1) * stride + 512, dtype=torch.bfloat16, device=m.device)
        x = room.as_strided((1, times, 512), (0, stride, 1))
        return Call((x.copy_(m.normal(1, times, 512)), m.normal(512, 4, dtype="bfloat16")))

    return Case("bfloat16-far-apart", make, "bfloat16", "large", edges=("strides",))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in DTYPES:
        yield _case(dtype, (2, 1, 70), 4, size="tiny")
        yield _case(dtype, (1, 2, 5), 4, bias=False, size="tiny")
        yield _case(dtype, (2, 37, 130), 4)
        yield _case(dtype, (1, 50, 64), 3, bias=False, silu=False)
        yield _case(dtype, (1, 20, 64), 1, state=False, size="tiny")
        yield _case(dtype, (1, 9, 33), 7, state=False, silu=False, size="tiny")
        yield _case(dtype, (1, 0, 16), 4, size="tiny")
        yield _case(dtype, (0, 5, 16), 4, size="tiny")
        yield _case(dtype, (1, 20, 64), 4, silu=False, edges=True)
        yield _strided(dtype)
        yield _backward(dtype, (2, 37, 70), 4, full=True)
        yield _backward(dtype, (1, 2, 40), 4, full=True, size="tiny")
        yield _backward(dtype, (2, 20, 33), 3, full=False)
        yield _backward(dtype, (2, 0, 33), 3, full=True, size="tiny")
        yield _case(dtype, (1, 2048, 8192), 4, size="large", compiled=True)
        yield _case(dtype, (8, 1, 8192), 4, size="large", compiled=True)
        yield _backward(dtype, (2, 2048, 5120), 4, full=True, size="large", compiled=True)
    yield _far()
