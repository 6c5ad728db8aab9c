"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes


def _case(dtype: str, shape: tuple[int, ...], k: int, *, axis: int = -1, largest: bool = True) -> Case:
    def make(m: Maker) -> Call:
        return Call((elements(m, *shape, dtype=dtype), k, axis), {"largest": largest})

    length = max(shape)
    size = size_of(length, 128, 1000)
    name = f"{dtype}-{sizes(shape)}-k{k}-axis{axis}{'-smallest' * (not largest)}"
    compiled = dtype in ("float32", "bfloat16", "int64") and shape in ((16, 128), (2, 5000), (2, 151_936))
    return Case(name, make, dtype, size, compiled=compiled, edges=("empty",) if 0 in shape else ("nan", "odd"))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in NUMBERS:
        yield _case(dtype, (3, 40), 5)
        yield _case(dtype, (2, 300), 7, largest=False)
        yield _case(dtype, (2, 700), 20)
        yield _case(dtype, (2, 151_936), 50)
        yield _case(dtype, (3, 100_003), 8, largest=False)
    for dtype in ("float32", "bfloat16"):
        yield _case(dtype, (16, 128), 8)
        yield _case(dtype, (3, 120), 5).by("pieces")
        yield _case(dtype, (3, 120), 2).by("groups")
        yield _case(dtype, (5, 6, 7), 2, axis=1)
        yield _case(dtype, (4, 9), 9)
        yield _case(dtype, (4, 9), 0)
        yield _case(dtype, (0, 9), 3)
        yield _case(dtype, (1, 1), 1)
        yield _case(dtype, (2, 500), 100)
        yield _case(dtype, (2, 5000), 50)
        yield _case(dtype, (40_000, 256), 8)
        yield _case(dtype, (7, 151_936), 1)
        yield _case(dtype, (2, 151_936), 1000)
        yield _case(dtype, (2, 50_000), 30_000)
        yield _case(dtype, (1, 20_000_000), 64)
