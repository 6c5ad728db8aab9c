"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, sizes


def _logits(m: Maker, rows: tuple[int, ...], experts: int, dtype: str) -> Any:
    """Return logits whose largest ones stand apart: rounding must not decide which expert is taken."""
    count = 1
    for size in rows:
        count *= size
    # An odd factor visits every place of a power of two; elsewhere equal logits lie far below the largest.
    values = [-0.25 * ((place * 37 + 11 * row) % experts) for row in range(count) for place in range(experts)]
    return m.of(values, dtype).reshape(*rows, experts)


def _case(
    dtype: str, rows: tuple[int, ...], experts: int, k: int, *, normalise: bool = False, compiled: bool = False
) -> Case:
    def make(m: Maker) -> Call:
        return Call((_logits(m, rows, experts, dtype), k), {"normalise": normalise})

    name = f"{dtype}-{sizes((*rows, experts))}-k{k}{'-normal' * normalise}"
    return Case(name, make, dtype, "tiny", compiled=compiled, edges=("empty",) if 0 in rows else ())


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case(dtype, (1, 1), 128, 8, normalise=True, compiled=True)
        yield _case(dtype, (3,), 64, 6, compiled=True)
        yield _case(dtype, (2, 5), 128, 8)
        yield _case(dtype, (5,), 60, 4, normalise=True)
        yield _case(dtype, (2,), 8, 2, normalise=True)
        yield _case(dtype, (), 16, 1, normalise=True)
        yield _case(dtype, (2,), 5, 5, normalise=True)
        yield _case(dtype, (1,), 1, 1)
        yield _case(dtype, (0,), 16, 4)
        yield _case(dtype, (2,), 40, 32)
