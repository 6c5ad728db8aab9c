"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size


def _case(
    dtype: str, shape: tuple[int, int, int, int, int, int], *, vector: bool = False, state: bool = True,
    mask: bool = False, size: Size = "small", compiled: bool = False, name: str = "",
) -> Case:  # fmt: skip
    b, t, hk, hv, dk, dv = shape

    def make(m: Maker) -> Call:
        q, k = (torch.nn.functional.normalize(m.normal(b, t, hk, dk), dim=-1) for _ in range(2))
        # Keys that resemble each other make the system of a chunk stiff.
        if name == "alike" and t:
            k = torch.nn.functional.normalize(k + 3.0 * k[:, :1], dim=-1)
        gate = torch.exp(-torch.nn.functional.softplus(m.normal(b, t, hv, *([dk] if vector else []))))
        if name == "forgetting" and t:
            gate[:, :: max(t // 3, 1)] = 0.0
        options = {
            "state": m.normal(b, hv, dv, dk) if state else None,
            "mask": m.integers(0, 4, b, t).to(torch.bool) if mask else None,
        }
        q, k = (q * dk**-0.5).to(getattr(torch, dtype)), k.to(getattr(torch, dtype))
        return Call((q, k, m.normal(b, t, hv, dv, dtype=dtype), gate, torch.sigmoid(m.normal(b, t, hv))), options)

    marks = "".join(
        f"-{mark}" for mark, on in (("vector", vector), ("state", state), ("mask", mask), (name, name)) if on
    )
    return Case(f"{dtype}-{b}x{t}-h{hk}-{hv}-d{dk}-{dv}{marks}", make, dtype, size, compiled=compiled)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (2, 1, 2, 4, 32, 16), size="tiny")
        yield _case(dtype, (1, 5, 1, 2, 20, 9), state=False, size="tiny")
        yield _case(dtype, (1, 7, 1, 2, 32, 32), vector=True, mask=True, size="tiny")
        yield _case(dtype, (2, 77, 1, 2, 64, 32))
        yield _case(dtype, (1, 64, 1, 1, 128, 128), state=False)
        yield _case(dtype, (1, 70, 2, 2, 40, 24), mask=True)
        yield _case(dtype, (1, 100, 1, 1, 64, 32), name="alike")
        yield _case(dtype, (1, 100, 1, 1, 64, 32), name="forgetting")
        yield _case(dtype, (1, 0, 1, 1, 32, 32), size="tiny")
        yield _case(dtype, (0, 3, 1, 1, 32, 32), size="tiny")
        yield _case(dtype, (1, 512, 16, 32, 128, 128), size="large", compiled=True)
        yield _case(dtype, (4, 1, 16, 32, 128, 128), size="large", compiled=True)
