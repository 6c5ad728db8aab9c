"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _case(function: str, dtype: str, shape: tuple[int, ...], p: float, *, edges: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = m.edges(*shape, dtype=dtype) if edges else m.normal(*shape, dtype=dtype)
        if function == "dropout_mlx":
            return Call((x, p, m.integers(-(1 << 31), 1 << 31, 2, dtype="int32").view(torch.uint32)))
        return Call((x, p, m.integers(0, 1 << 62, 2, dtype="int64")))

    n = torch.Size(shape).numel()
    size = size_of(n, 500, 5000)
    name = f"{function}-{dtype}-{sizes(shape)}-{p}{'-edges' * edges}"
    return Case(
        name, make, dtype, size, function=function,
        # Denormals may be flushed; float64 has a factor of its own, a unit of bf16 away.
        tolerance=Tolerance(ulps=2.1) if edges else None,
        compiled=n == 4096,
        edges=("nan",) if edges else ("empty",) if n == 0 else ("odd",),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for function in ("dropout_mlx", "dropout_philox"):
        for dtype in FLOATS:
            for shape, p in (((1,), 0.5), ((3, 41), 0.1), ((0, 3), 0.3), ((2, 2048), 0.9), ((1000, 3001), 0.2)):
                yield _case(function, dtype, shape, p)
            yield _case(function, dtype, (90,), 0.4, edges=True)
