"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, sizes


def _case(
    dtype: str, lead: tuple[int, ...], rows: int, size: int, *, transposed: bool = False, compiled: bool = False
) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(*lead, rows, size, dtype=dtype)
        if transposed:
            x = m.normal(*lead, size, rows, dtype=dtype).transpose(-1, -2)
        return Call((x, m.normal(*lead, rows, dtype=dtype)))

    name = f"{dtype}-{sizes((*lead, rows, size))}{'-turned' * transposed}"
    edges = ("empty",) if 0 in (*lead, rows, size) else ("strides",) if transposed else ()
    return Case(name, make, dtype, "tiny" if rows * size < 8192 else "small", compiled=compiled, edges=edges)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (1, 1), 8, 2048, compiled=True)
        yield _case(dtype, (3,), 4, 70)
        yield _case(dtype, (2, 2), 32, 300)
        yield _case(dtype, (), 5, 64)
        yield _case(dtype, (2,), 1, 1)
        yield _case(dtype, (2,), 3, 40, transposed=True)
        yield _case(dtype, (0,), 3, 16)
        yield _case(dtype, (2,), 0, 16)
        yield _case(dtype, (2,), 3, 0)
