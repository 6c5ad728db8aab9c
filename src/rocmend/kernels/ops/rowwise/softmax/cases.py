"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.rowwise.logsumexp.cases import ODD_ROWS, rows_size
from rocmend.kernels.suite import Call, Case, Maker, sizes


def _plain(dtype: str, *shape: int, axis: int | tuple[int, ...] | None = -1, log: bool = False) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.normal(*shape, dtype=dtype, scale=3.0), axis))

    name = f"{dtype}-{sizes(shape)}-axis-{axis}{'-log' * log}".replace(" ", "")
    compiled = shape in ((200, 128), (3, 4096), (2, 16384), (2, 40_003)) and axis == -1
    marks = ("empty",) if 0 in shape else ()
    function = "log_softmax" if log else None
    return Case(name, make, dtype, rows_size(shape), compiled=compiled, edges=marks, function=function)


def _odd(dtype: str, *, split: bool, log: bool) -> Case:
    def make(m: Maker) -> Call:
        rows = m.of(ODD_ROWS, dtype)
        if split:  # the same rows, far apart in long ones
            wide = m.of([[0.0]], dtype).expand(len(ODD_ROWS), 33_000).clone() - 1e4
            wide[0] = float("-inf")
            wide[:, ::16_000] = rows
            rows = wide
        return Call((rows, -1))

    function = "log_softmax" if log else None
    name = f"{dtype}-odd{'-split' * split}{'-log' * log}"
    return Case(name, make, dtype, "small" if split else "tiny", edges=("nan", "inf"), function=function)


def _gradient(dtype: str, *shape: int, log: bool = False) -> Case:
    def make(m: Maker) -> Call:
        out = m.normal(*shape, dtype="float32", scale=3.0)
        out = out if m.device.type == "meta" else torch.log_softmax(out, -1) if log else torch.softmax(out, -1)
        return Call((m.normal(*shape, dtype=dtype), out.to(BY_NAME[dtype])), {"log": log})

    return Case(
        f"{dtype}-{sizes(shape)}-gradient{'-log' * log}",
        make,
        dtype,
        rows_size(shape),
        function="softmax_backward",
        compiled=not log and shape in ((200, 128), (3, 4096), (2, 16384), (2, 40_003)),
        # Differences of fp32 sums, rounded once.
        tolerance=Tolerance(ulps=8 if dtype == "float32" else 0.52, scaled=2e-6),
    )


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for shape in ((1, 1), (3, 7), (0, 4), (2, 0), (200, 128), (3, 4096), (2, 16384), (2, 40_003)):
            yield _plain(dtype, *shape)
        for shape in ((262144, 128), (8192, 4096), (1024, 32768), (4, 300_001)):
            yield _plain(dtype, *shape)
        yield _plain(dtype, 3, 4, 5, axis=None)
        yield _plain(dtype, 3, 4, 5, axis=(0, 2))
        yield _plain(dtype, 3, 4, 5, axis=1)
        for log in (False, True):
            yield _plain(dtype, 5, 77, log=log).by("split")
            yield _gradient(dtype, 5, 77, log=log).by("split_backward")
        yield _plain(dtype, 5, 77, log=True)
        for shape in ((3, 7), (0, 4), (200, 128), (3, 4096), (2, 16384), (2, 40_003), (8192, 4096)):
            yield _gradient(dtype, *shape)
            yield _gradient(dtype, *shape, log=True)
        yield _plain(dtype, 2, 40_003, log=True)
        for split in (False, True):
            for log in (False, True):
                yield _odd(dtype, split=split, log=log)
    yield Case(
        "bfloat16-far-rows",
        lambda m: Call((m.normal(540_000, 4096, dtype="bfloat16")[::60_000], -1)),
        "bfloat16",
        "large",
        edges=("huge", "strides"),
    )
