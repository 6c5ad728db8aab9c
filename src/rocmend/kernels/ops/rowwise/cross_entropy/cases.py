"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import FLOATS, tolerances
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.rowwise.logsumexp.cases import rows_size
from rocmend.kernels.suite import Call, Case, Maker, sizes

# One rounding of a difference in fp32 of numbers up to 1.
GRADIENT = tolerances(Tolerance(ulps=8, scaled=1e-6), Tolerance(ulps=0.52, scaled=1e-6))


def _case(
    dtype: str, *shape: int, smoothing: float = 0.0, backward: bool = False, targets: str = "int64", apart: int = 1
) -> Case:
    def make(m: Maker) -> Call:
        logits = m.normal(shape[0] * apart, *shape[1:], dtype=dtype, scale=3.0)[::apart]
        chosen = m.integers(0, shape[-1], *shape[:-1], dtype=targets)
        if chosen.numel() > 2:
            chosen.reshape(-1)[1] = -100
        grads = (m.normal(*shape[:-1]),) if backward else ()
        return Call((*grads, logits, chosen), {"label_smoothing": smoothing})

    marks = f"{'-gradient' * backward}{'-apart' if apart > 1 else ''}"
    name = f"{dtype}-{sizes(shape)}-{targets}-smooth-{smoothing}{marks}"
    compiled = shape in ((200, 100), (200, 1000), (3, 9000), (3, 30_001), (300, 17_000))
    edges = ("empty",) if 0 in shape else ()
    if not backward:
        return Case(name, make, "float32", rows_size(shape), compiled=compiled, edges=edges)
    return Case(
        name, make, dtype, rows_size(shape), function="cross_entropy_backward", compiled=compiled, edges=edges,
        tolerance=GRADIENT[dtype],
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for backward in (False, True):
            for shape in ((1, 1), (3, 7), (2, 3, 33), (0, 4), (200, 100), (200, 1000), (3, 9000), (3, 30_001)):
                yield _case(dtype, *shape, backward=backward)
            yield _case(dtype, 5, 40, smoothing=0.1, backward=backward, targets="int32")
            yield _case(dtype, 2, 9001, smoothing=0.1, backward=backward)
            for shape in ((300, 17_000), (512, 152_064), (200, 262_144), (8, 262_144), (65_536, 1000)):
                yield _case(dtype, *shape, backward=backward)
        yield _case(dtype, 5, 40, smoothing=0.1).by("walk")
        yield _case(dtype, 9, 131_072, apart=1820 if dtype == "bfloat16" else 1)
