"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size


def _case(
    dtype: str, shape: tuple[int, int, int, int, int, int], *, state: bool = True, mask: bool = False,
    size: Size = "small", compiled: bool = False,
) -> Case:  # fmt: skip
    batch, t, h, g, p, n = shape

    def make(m: Maker) -> Call:
        options = {
            "state": m.normal(batch, h, p, n) if state else None,
            "mask": m.integers(0, 4, batch, t).to(torch.bool) if mask else None,
        }
        b, c = (m.normal(batch, t, g, n, dtype=dtype, scale=n**-0.25) for _ in range(2))
        return Call(
            (
                m.normal(batch, t, h, p, dtype=dtype), m.normal(batch, t, h, dtype=dtype), m.normal(h), b, c,
                m.normal(h), m.normal(h) - 2.0,
            ),
            options,
        )  # fmt: skip

    marks = "".join(f"-{mark}" for mark, on in (("state", state), ("mask", mask)) if on)
    return Case(f"{dtype}-{batch}x{t}-h{h}-{g}-d{p}-{n}{marks}", make, dtype, size, compiled=compiled)


def _strided(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        # As a model has them: x, B and C are slices of one projection.
        both = m.normal(2, 40, 4 * 16 + 2 * 32, dtype=dtype)
        x = both[:, :, :64].unflatten(2, (4, 16))
        b, c = (both[:, :, at : at + 32].unflatten(2, (1, 32)) * 0.4 for at in (64, 96))
        return Call((x, m.normal(2, 40, 8, dtype=dtype)[:, :, ::2], m.normal(4), b, c, m.normal(4), m.normal(4)))

    return Case(f"{dtype}-strided", make, dtype, "small", edges=("strides",))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (2, 1, 4, 2, 16, 32), size="tiny")
        yield _case(dtype, (1, 5, 2, 1, 9, 20), state=False, mask=True, size="tiny")
        yield _case(dtype, (2, 100, 2, 1, 32, 64))
        yield _case(dtype, (1, 64, 1, 1, 64, 128), state=False)
        yield _case(dtype, (1, 70, 2, 2, 24, 40), mask=True)
        yield _strided(dtype)
        yield _case(dtype, (1, 0, 1, 1, 16, 16), size="tiny")
        yield _case(dtype, (0, 3, 1, 1, 16, 16), size="tiny")
        yield _case(dtype, (1, 512, 80, 1, 64, 128), size="large", compiled=True)
        yield _case(dtype, (4, 1, 80, 1, 64, 128), size="large", compiled=True)
