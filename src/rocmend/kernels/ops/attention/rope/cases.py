"""The suite's cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.rowwise.logsumexp.cases import rows_size
from rocmend.kernels.suite import Call, Case, Maker

# At places below 300 angles are within 2e-5 of the reference's.
NEAR = {
    "float32": Tolerance(ulps=8, scaled=2e-5),
    "float16": Tolerance(ulps=0.52, scaled=2e-5),
    "bfloat16": Tolerance(ulps=0.52, scaled=2e-5),
}
REFERENCE = "rocmend.kernels.ops.attention.rope.reference"


def _case(
    label: str,
    dtype: str,
    shape: tuple[int, ...],
    dims: int,
    *,
    offset: int | list[int] = 0,
    freqs: bool = False,
    order: tuple[int, ...] | None = None,
    function: str = "rope",
    keys: int = 0,
    near: bool = True,
    apart: int = 1,
    compiled: bool = False,
    **options: Any,
) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(*(shape if order is None else [shape[axis] for axis in order]), dtype=dtype)
        if order is not None:
            x = x.permute([order.index(axis) for axis in range(len(shape))])
        x = x[::apart]
        places = offset if isinstance(offset, int) else m.of(offset if len(offset) > 1 else offset[0], "int32")
        given = dict(options, offset=places)
        if freqs:
            given |= {"freqs": m.of([1.5 ** (one % 16) for one in range(dims // 2)], "float32"), "base": None}
        pair = (m.normal(shape[0], keys, *shape[2:], dtype=dtype),) if function == "rope_pair" else ()
        return Call((x, *pair, dims), given, ("freqs",))

    return Case(
        f"{dtype}-{label}",
        make,
        dtype,
        rows_size(shape),
        function=function,
        reference=f"{REFERENCE}:{function}",
        compiled=compiled,
        tolerance=NEAR[dtype] if near else None,
    )


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for traditional, function in itertools.product((False, True), ("rope", "rope_backward")):
            label = f"{function}{'-traditional' if traditional else ''}"
            common: dict[str, Any] = {"traditional": traditional, "function": function}
            yield _case(f"{label}-plain", dtype, (2, 3, 17, 64), 64, offset=3, compiled=True, **common)
            yield _case(f"{label}-part", dtype, (1, 2, 5, 48), 20, scale=0.5, base=100.0, **common)
            yield _case(f"{label}-freqs", dtype, (2, 1, 4, 16), 16, freqs=True, offset=[7, 130], **common)
            yield _case(f"{label}-one-offset", dtype, (2, 5, 1, 128), 128, offset=[250], compiled=True, **common)
        yield _case("three-axes", dtype, (3, 7, 32), 32)
        yield _case("five-axes", dtype, (2, 2, 3, 5, 32), 16, offset=[1, 2])
        yield _case("tokens-before-heads", dtype, (2, 4, 9, 32), 32, order=(0, 2, 1, 3))
        yield _case("all-strides", dtype, (2, 4, 9, 32), 32, order=(3, 1, 0, 2), traditional=True)
        yield _case("empty", dtype, (0, 4, 9, 32), 32)
        yield _case("no-token", dtype, (1, 4, 0, 32), 32)
        yield _case("far", dtype, (1, 2, 3, 128), 128, offset=4000, near=False, base=1e6)
        yield _case("pair", dtype, (2, 6, 1, 64), 64, function="rope_pair", keys=2, offset=[9, 200], compiled=True)
        yield _case("pair-part", dtype, (1, 5, 20, 40), 24, function="rope_pair", keys=3, traditional=True)
        yield _case("large", dtype, (4, 32, 4096, 128), 128, near=False, order=(0, 2, 1, 3))
        yield _case("large-traditional", dtype, (4, 32, 4096, 128), 128, near=False, traditional=True)
    yield _case("far-batches", "bfloat16", (33, 128, 4096, 128), 128, near=False, apart=32)
