"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size, sizes


def _case(
    dtype: str, shape: tuple[int, int, int, int], *, state: bool = True, size: Size = "small", compiled: bool = False
) -> Case:
    batch, _, heads, dim = shape

    def make(m: Maker) -> Call:
        kind = getattr(torch, dtype)
        decay = torch.exp(-0.6 * torch.sigmoid(m.normal(*shape)))
        axis = torch.nn.functional.normalize(m.normal(*shape), dim=-1)
        turn = axis * torch.sigmoid(m.normal(*shape))
        r, k, v = (m.normal(*shape, dtype=dtype) for _ in range(3))
        call = (r, decay.to(kind), k, v, (-axis).to(kind), turn.to(kind))
        return Call(call, {"state": m.normal(batch, heads, dim, dim) if state else None})

    name = f"{dtype}-{sizes(shape)}{'-state' * state}"
    return Case(name, make, dtype, size, compiled=compiled)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (2, 1, 2, 64), size="tiny")
        yield _case(dtype, (1, 9, 3, 20), state=False, size="tiny")
        yield _case(dtype, (1, 30, 2, 64))
        yield _case(dtype, (1, 0, 2, 16), size="tiny")
        yield _case(dtype, (0, 3, 2, 16), size="tiny")
        yield _case(dtype, (1, 300, 32, 64), size="large", compiled=True)
