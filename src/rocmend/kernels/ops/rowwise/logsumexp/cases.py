"""The suite's cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size, size_of, sizes

INF = float("inf")
ODD_ROWS = [
    [-INF, -INF, -INF],
    [INF, 1.0, -INF],
    [float("nan"), 1.0, INF],
    [-INF, 2.0, -INF],
    [0.0, -0.0, 0.0],
    [60000.0, -60000.0, 1.0],
    [float("nan"), float("nan"), float("nan")],
]


def rows_size(shape: Sequence[int]) -> Size:
    """Return the class of sizes of a shape."""
    return size_of(math.prod(shape), 4096, 300_000)


def _plain(dtype: str, *shape: int, axis: int | tuple[int, ...] | None = -1) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.normal(*shape, dtype=dtype, scale=3.0), axis))

    name = f"{dtype}-{sizes(shape)}-axis-{axis}".replace(" ", "")
    compiled = shape in ((200, 128), (3, 4096), (2, 16000), (2, 100_003), (300, 20_000)) and axis == -1
    return Case(name, make, dtype, rows_size(shape), compiled=compiled, edges=("empty",) if 0 in shape else ())


def _odd(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.of(ODD_ROWS, dtype), -1))

    return Case(f"{dtype}-odd", make, dtype, "tiny", edges=("nan", "inf"))


def _gradient(dtype: str, *shape: int) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(*shape, dtype=dtype, scale=3.0)
        return Call((m.normal(shape[0]), x, m.normal(shape[0]) + 9.0))

    return Case(
        f"{dtype}-{sizes(shape)}-gradient", make, dtype, rows_size(shape), function="logsumexp_backward",
        compiled=shape == (200, 128),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for shape in (
            (1, 1),
            (3, 7),
            (0, 4),
            (2, 0),
            (200, 128),
            (3, 4096),
            (2, 16000),
            (300, 20_000),
            (2, 100_003),
            (262144, 128),
            (8192, 4096),
            (4, 262144),
            (512, 152064),
        ):
            yield _plain(dtype, *shape)
        for shape in ((3, 7), (0, 4), (200, 128), (3, 5000), (8192, 4096)):
            yield _gradient(dtype, *shape)
        yield _plain(dtype, 3, 4, 5, axis=None)
        yield _plain(dtype, 3, 4, 5, axis=(0, 2))
        yield _plain(dtype, 3, 4, 5, axis=1)
        for implementation in ("held", "walk"):
            yield _odd(dtype).by(implementation)
    yield Case(
        "bfloat16-beyond-2-31",
        lambda m: Call((m.normal(16_400, 131_072, dtype="bfloat16")[::1600], -1)),
        "bfloat16",
        "large",
        edges=("huge", "strides"),
    )
