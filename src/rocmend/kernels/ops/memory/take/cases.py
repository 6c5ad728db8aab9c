"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import ELEMENTS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _case(
    dtype: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int | None,
    *, along: bool = False, kind: str = "int64", beyond: int = 0,
) -> Case:  # fmt: skip
    def make(m: Maker) -> Call:
        length = torch.Size(shape).numel() if axis is None else shape[axis]
        low = 0 if kind == "uint32" else -length
        index = m.integers(low - beyond * (low < 0), max(length, 1) + beyond, *indices, dtype="int64")
        index = index.to(torch.int32).view(torch.uint32) if kind == "uint32" else index.to(BY_NAME[kind])
        return Call((elements(m, *shape, dtype=dtype), index, axis))

    function = "take_along_axis" if along else "take"
    elements_ = torch.Size(shape).numel() + torch.Size(indices).numel()
    size = size_of(elements_, 2000, 10000)
    name = (
        f"{'along-' if along else ''}{dtype}-{sizes(shape)}-{sizes(indices) or 'scalar'}"
        f"-axis{axis}-{kind}{'-outside' * (beyond > 0)}"
    )
    return Case(
        name, make, dtype, size, function=function,
        compiled=dtype in ("float32", "bfloat16") and kind == "int64" and shape in ((30, 256), (4, 9, 6), (5, 300)),
        edges=("empty",) if 0 in shape + indices else ("odd",),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in ELEMENTS:
        yield _case(dtype, (13, 5), (4, 3), 0)
        yield _case(dtype, (3, 13), (3, 4), 1, along=True)
    for dtype in ("float32", "bfloat16"):
        for kind in ("int32", "int64", "uint32", "int16"):
            yield _case(dtype, (4, 9, 6), (7,), 1, kind=kind)
            yield _case(dtype, (4, 9, 6), (4, 7, 6), 1, kind=kind, along=True)
        yield _case(dtype, (30, 256), (17,), 0)
        yield _case(dtype, (5, 300), (5, 70), -1, along=True)
        yield _case(dtype, (5, 30), (1, 7), 1, along=True)
        yield _case(dtype, (2, 5, 4200), (3,), 1)
        yield _case(dtype, (3, 9, 64), (48,), 1, kind="int32", beyond=2)
        yield _case(dtype, (5, 30), (11,), None)
        yield _case(dtype, (40,), (), 0)
        yield _case(dtype, (5, 6), (0,), 0)
        yield _case(dtype, (0, 6), (3,), 1)
        yield _case(dtype, (9, 6), (50,), 0, beyond=5)
        yield _case(dtype, (9, 6), (50, 6), 0, beyond=5, along=True)
        yield _case(dtype, (151_936, 1024), (4096,), 0, kind="int32")
        yield _case(dtype, (64, 40_000), (64, 3000), 1, along=True)
        yield _case(dtype, (8, 3000, 100), (2000,), 1)
