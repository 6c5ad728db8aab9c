"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _case(dtype: str, shape: tuple[int, ...], axis: int | None, function: str, *, permuted: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = elements(m, *shape, dtype=dtype)
        return Call((x.transpose(0, -1) if permuted else x, axis))

    length = max(shape)
    size = size_of(length, 128, 1000)
    name = f"{function}-{dtype}-{sizes(shape)}-axis{axis}{'-permuted' * permuted}"
    return Case(
        name, make, dtype, size, function=function,
        compiled=dtype in ("float32", "bfloat16", "int64") and shape in ((2, 151_936), (3000, 70)),
        edges=("strides",) if permuted else ("nan", "odd"),
    )  # fmt: skip


def _beyond(m: Maker) -> Call:
    x = torch.zeros(2_200_000_000, dtype=torch.bool, device=m.device)
    x[2_170_000_001:] = True
    return Call((x,))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in NUMBERS:
        for function in ("argmax", "argmin"):
            yield _case(dtype, (3, 40), -1, function)
            yield _case(dtype, (2, 301), 1, function)
            yield _case(dtype, (2, 151_936), -1, function)
        yield _case(dtype, (150, 5), 0, "argmax")
        yield _case(dtype, (3, 11, 4), 1, "argmin")
        yield _case(dtype, (3000, 70), 0, "argmax")
    for dtype in ("float32", "bfloat16"):
        yield _case(dtype, (1,), 0, "argmax")
        yield _case(dtype, (0, 3), 1, "argmax")
        yield _case(dtype, (5, 6, 7), None, "argmin")
        yield _case(dtype, (5, 7), 0, "argmax", permuted=True)
        yield _case(dtype, (30_000_001,), None, "argmax")
        yield _case(dtype, (100_000, 64), 1, "argmin")
        yield _case(dtype, (100_000, 64), 0, "argmin")
    yield Case("argmax-bool-beyond-2^31", _beyond, "int64", "large", reference="argmax_flat")
