"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.recurrence.scan import FUNCTIONS
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _output(dtype: str, function: str) -> str:
    if function == "cumsum" and dtype == "bool":
        return "int32"
    return "float32" if function == "logcumsumexp" and not BY_NAME[dtype].is_floating_point else dtype


def _input(m: Maker, dtype: str, function: str, shape: tuple[int, ...], *, edges: bool) -> Tensor:
    if function in ("cummax", "cummin") or dtype == "bool":
        return elements(m, *shape, dtype=dtype)
    if not BY_NAME[dtype].is_floating_point:
        signed = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}.get(dtype, dtype)
        high = 3 if function == "cumprod" else 100
        return m.integers(1, high, *shape, dtype=signed).view(BY_NAME[dtype])
    if edges and function in ("cumsum", "logcumsumexp"):
        return m.edges(*shape, dtype="float16").to(BY_NAME[dtype])
    x = m.normal(*shape, dtype=dtype)
    return 1 + x / 16 if function == "cumprod" else x


def _case(
    function: str, dtype: str, shape: tuple[int, ...], axis: int | None,
    *, reverse: bool = False, inclusive: bool = True, edges: bool = False, permuted: bool = False,
) -> Case:  # fmt: skip
    def make(m: Maker) -> Call:
        x = _input(m, dtype, function, shape, edges=edges)
        return Call((x.transpose(0, -1) if permuted else x, axis), {"reverse": reverse, "inclusive": inclusive})

    length = max(shape)
    size = size_of(length, 64, 200)
    name = (
        f"{function}-{dtype}-{sizes(shape)}-axis{axis}{'-reverse' * reverse}"
        f"{'-exclusive' * (not inclusive)}{'-edges' * edges}{'-permuted' * permuted}"
    )
    # A product's relative error grows with its factors; a scan that compares is exact.
    tolerance = Tolerance() if function in ("cummax", "cummin") else None
    output = _output(dtype, function)
    if function == "cumprod" and output in ("float32", "float64"):
        tolerance = Tolerance(ulps=0.5 * min(length, 4000) + 2)
    if function == "cumprod" and output in ("float16", "bfloat16"):
        tolerance = Tolerance(ulps=0.6)
    if function == "logcumsumexp" and output == "float64":
        tolerance = Tolerance(ulps=16, scaled=1e-14)
    marks = ("nan",) if edges else ("strides",) if permuted else ("odd",)
    return Case(
        name, make, output, size, function=function,
        compiled=dtype in ("float32", "bfloat16") and shape in ((64, 4096), (2, 2000, 700)),
        edges=marks, tolerance=tolerance,
    )  # fmt: skip


def _beyond(m: Maker) -> Call:
    return Call((torch.arange(2_200_000_000, dtype=torch.int32, device=m.device) % 7, 0))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for function in FUNCTIONS:
        for dtype in NUMBERS:
            yield _case(function, dtype, (1, 30), -1)
            yield _case(function, dtype, (2, 5, 3), 1, reverse=True, inclusive=False)
            if function != "cumprod":
                yield _case(function, dtype, (2, 100_003), -1)
        for dtype in ("float32", "bfloat16"):
            yield _case(function, dtype, (1, 1), -1, inclusive=False)
            yield _case(function, dtype, (0, 3), 1)
            yield _case(function, dtype, (3, 7), None, reverse=True)
            yield _case(function, dtype, (3, 37), 1, edges=True)
            yield _case(function, dtype, (4, 9), 0, permuted=True)
            if function in ("cumsum", "cummin"):
                yield _case(function, dtype, (1, 130), -1)
            yield _case(function, dtype, (1, 130), -1, reverse=True, inclusive=False)
            yield _case(function, dtype, (2, 10, 3), 1)
            yield _case(function, dtype, (2, 2000, 700), 1, inclusive=False)
            yield _case(function, dtype, (64, 4096), -1, reverse=True)
    # Long rows, in tiles.
    for function in ("cumsum", "cummax", "logcumsumexp"):
        for dtype in ("float32", "bfloat16"):
            yield _case(function, dtype, (3, 1_000_003), -1)
            yield _case(function, dtype, (3, 1_000_003), -1, reverse=True, inclusive=False)
    yield _case("cumsum", "int32", (1, 16_000_000), -1)
    yield _case("cumsum", "float32", (30_000_001,), 0)
    yield Case("cumsum-int32-beyond-2^31", _beyond, "int32", "large", reference="cumsum_flat")
