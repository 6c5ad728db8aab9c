"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.suite import Call, Case, Maker, Size, sizes


def elements(m: Maker, *shape: int, dtype: str) -> Tensor:
    """Return elements of any type: floats with every odd value strewn in, integers of the whole range, repeated."""
    kind = BY_NAME[dtype]
    if dtype == "complex64":
        return m.normal(*shape, 2).view(kind).squeeze(-1)
    if dtype.startswith("float8"):
        return m.integers(-128, 128, *shape, dtype="int8").view(kind)
    if kind.is_floating_point:
        if m.device.type == "meta" or (m.device.type == "cuda" and torch.Size(shape).numel() > 1 << 24):
            return m.normal(*shape, dtype=dtype)
        # Rounded, so that there are equal elements whose order shows.
        return (m.edges(*shape, dtype="float32") * 8).round().div(8).to(kind)
    if dtype == "bool":
        return m.integers(0, 2, *shape, dtype="uint8").bool()
    signed = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}.get(dtype, dtype)
    wide = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}[NUMBERS[dtype]]
    info = torch.iinfo(BY_NAME[wide])
    low = m.integers(info.min // 2, info.max // 2, *shape, dtype="int64")
    few = m.integers(-3, 4, *shape, dtype="int64")
    mixed = torch.where(low % 2 == 0, few, low * 2)
    return mixed.to(BY_NAME["int8" if dtype == "uint8" else signed]).view(kind)


def _case(dtype: str, *shape: int, axis: int | None = -1, indices: bool = False, permuted: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = elements(m, *shape, dtype=dtype)
        return Call((x.transpose(0, -1) if permuted else x, axis))

    length = max(shape) if shape else 1
    size: Size = "tiny" if length <= 128 else "small" if torch.Size(shape).numel() <= 1000 else "large"
    name = f"{'arg' if indices else ''}{dtype}-{sizes(shape) or 'scalar'}-axis{axis}{'-permuted' * permuted}"
    marks = ("strides",) if permuted else ("empty",) if 0 in shape else ("nan", "odd")
    real = dtype in ("float32", "bfloat16", "int64") and shape in ((16, 2048), (2, 50000), (16, 128), (1, 4096))
    return Case(
        name, make, "int64" if indices else dtype, size, function="argsort" if indices else "sort",
        compiled=real and not permuted, edges=marks,
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in NUMBERS:
        yield _case(dtype, 3, 50)
        yield _case(dtype, 3, 50, indices=True)
        yield _case(dtype, 300)
        yield _case(dtype, 1, 300, indices=True)
        yield _case(dtype, 2, 300)
        yield _case(dtype, 2, 300, indices=True)
        yield _case(dtype, 1, 4096, indices=True)
        yield _case(dtype, 5000)
        yield _case(dtype, 16, 2048, indices=True)
        for indices in (False, True):
            yield _case(dtype, 2, 50000, indices=indices)
        yield _case(dtype, 3, 1_000_003, indices=True)
    for dtype in ("float32", "bfloat16"):
        yield _case(dtype)
        yield _case(dtype, 1)
        yield _case(dtype, 0, 7)
        yield _case(dtype, 7, 0, indices=True)
        yield _case(dtype, 5, 6, 7, axis=1)
        yield _case(dtype, 5, 6, 7, axis=None, indices=True)
        yield _case(dtype, 9, 4, axis=0, indices=True)
        yield _case(dtype, 6, 5, permuted=True)
        yield _case(dtype, 16, 128)
        for implementation in ("counted", "radix"):
            yield _case(dtype, 3, 50, indices=True).by(implementation)
        yield _case(dtype, 16, 2048)
        yield _case(dtype, 100_000, 128, indices=True)
        yield _case(dtype, 16, 151_936, indices=True)
    yield _case("float32", 40_000_000)
