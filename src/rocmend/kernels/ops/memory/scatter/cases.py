"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.ops.memory.scatter import MODES
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _values(m: Maker, *shape: int, dtype: str, mode: str) -> Tensor:
    if BY_NAME[dtype].is_floating_point and mode in ("add", "prod"):
        x = m.normal(*shape, dtype=dtype)
        return 1 + x / 8 if mode == "prod" else x
    return elements(m, *shape, dtype=dtype)


def _case(
    mode: str, dtype: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int,
    *, along: bool = False, kind: str = "int64", beyond: int = 0,
) -> Case:  # fmt: skip
    def make(m: Maker) -> Call:
        length = shape[axis]
        low = 0 if kind == "uint32" else -length
        index = m.integers(low - beyond, max(length, 1) + beyond, *indices, dtype="int64")
        index = index.to(torch.int32).view(torch.uint32) if kind == "uint32" else index.to(BY_NAME[kind])
        to = indices if along else (*shape[:axis], *indices, *shape[axis + 1 :])
        x, updates = (_values(m, *sizes, dtype=dtype, mode=mode) for sizes in (shape, to))
        return Call((x, index, updates, axis), {"mode": mode})

    function = "put_along_axis" if along else "scatter"
    elements_ = torch.Size(shape).numel() + torch.Size(indices).numel()
    size = size_of(elements_, 500, 10000)
    name = (
        f"{mode}-{'along-' if along else ''}{dtype}-{sizes(shape)}-{sizes(indices)}"
        f"-axis{axis}-{kind}{'-outside' * (beyond > 0)}"
    )
    return Case(
        name, make, dtype, size, function=function,
        compiled=dtype in ("float32", "bfloat16", "int32") and shape in ((20, 256), (13, 5)),
        edges=("empty",) if 0 in shape + indices else ("odd",),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for mode in MODES:
        for dtype in NUMBERS:
            # The reference walks truth values with the modes that the function replaces.
            if dtype == "bool" and mode in ("add", "prod"):
                continue
            yield _case(mode, dtype, (13, 5), (20,), 0)
        for dtype in ("float32", "bfloat16", "int32"):
            yield _case(mode, dtype, (3, 7, 4), (2, 3), 1, kind="int32", beyond=3)
            yield _case(mode, dtype, (3, 13), (3, 20), 1, along=True)
            yield _case(mode, dtype, (9,), (60,), 0, kind="uint32")
            if mode in ("add", "assign"):
                yield _case(mode, dtype, (20, 256), (30,), 0)
            yield _case(mode, dtype, (5, 6), (0,), 0)
            yield _case(mode, dtype, (40_000, 512), (3000,), 0)
            yield _case(mode, dtype, (64, 2000), (64, 3000), 1, along=True)
