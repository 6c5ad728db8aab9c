"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.rowwise.rms_norm.cases import GRADIENT, norm_size
from rocmend.kernels.suite import Call, Case, Maker, sizes

# Three roundings, after adding, normalising and weighting, where the reference has none: up to a unit each.
FORWARD = {"float32": Tolerance(ulps=6), "float16": Tolerance(ulps=3.05, scaled=1e-7), "bfloat16": Tolerance(ulps=3.05)}


def _case(dtype: str, *shape: int, weighted: bool = True, backward: bool = False, strided: bool = False) -> Case:
    def make(m: Maker) -> Call:
        if strided:
            values = [m.normal(*shape[::-1], dtype=dtype).permute(*range(len(shape) - 1, -1, -1)) for _ in range(3)]
        else:
            values = [m.normal(*shape, dtype=dtype) for _ in range(3)]
        weight = m.normal(shape[-1], dtype=dtype) if weighted else None
        return Call((*values[: 3 if backward else 2], weight, 1e-5))

    marks = f"{'-unweighted' * (not weighted)}{'-gradients' * backward}{'-strided' * strided}"
    return Case(
        f"{dtype}-{sizes(shape)}{marks}", make, dtype, norm_size(shape),
        function="add_rms_norm_backward" if backward else "add_rms_norm",
        compiled=shape in ((4, 4096), (2, 20_001)) and weighted,
        tolerance=(GRADIENT if backward else FORWARD)[dtype],
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for shape in ((1, 1), (3, 7), (0, 4), (70, 96), (4, 4096), (2, 20_001), (20_000, 4096), (3, 300_001)):
            yield _case(dtype, *shape)
        yield _case(dtype, 4, 100, weighted=False)
        for implementation in ("held", "split"):
            yield _case(dtype, 4, 3, 50, strided=True).by(implementation)
        for shape in ((3, 7), (70, 96), (4, 4096), (20_000, 4096)):
            yield _case(dtype, *shape, backward=True)
