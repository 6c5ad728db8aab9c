"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, Size, sizes

DTYPES = ("float32", "float16", "bfloat16")
SHAPES = ((1, 1), (3, 7), (2, 3, 64), (0, 64), (5, 0), (300, 128), (4, 4096), (2, 16384), (3, 20001))
LARGE = ((40000, 4096), (3, 300_001), (262144, 128))
# Gradients are one rounding of fp32 sums whose terms cancel; the weight's runs over all rows.
GRADIENT = {
    "float32": Tolerance(ulps=8, scaled=4e-6),
    "float16": Tolerance(ulps=0.51, scaled=4e-6),
    "bfloat16": Tolerance(ulps=0.51, scaled=4e-6),
}


def size_of(shape: tuple[int, ...]) -> Size:
    """Return the class of sizes of a shape."""
    count = 1
    for one in shape:
        count *= one
    return "tiny" if count <= 4096 else "large" if count > 100_000 else "small"


def _plain(dtype: str, *shape: int, weighted: bool = True, edges: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = m.edges(*shape, dtype=dtype, largest=False) if edges else m.normal(*shape, dtype=dtype)
        return Call((x, *((m.normal(shape[-1], dtype=dtype) if weighted else None) for _ in range(2)), 1e-5))

    name = f"{dtype}-{sizes(shape)}{'-unweighted' * (not weighted)}{'-edges' * edges}"
    marks = tuple(mark for mark, on in (("nan", edges), ("empty", 0 in shape), ("one", 1 in shape)) if on)
    compiled = shape in ((300, 128), (4, 4096), (2, 16384), (3, 20001)) and weighted
    return Case(name, make, dtype, size_of(shape), compiled=compiled, edges=marks)


def _strided(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        return Call(
            (
                m.normal(96, 7, 3, dtype=dtype).permute(2, 1, 0),
                m.normal(192, dtype=dtype)[::2],
                m.normal(96, dtype=dtype),
                1e-6,
            )
        )

    return Case(f"{dtype}-permuted", make, dtype, "tiny", edges=("strides",))


def _far(dtype: str) -> Case:
    """Rows further apart than 32 bits can address."""

    def make(m: Maker) -> Call:
        return Call((m.normal(540_000, 4096, dtype=dtype)[::60_000], m.normal(4096, dtype=dtype), None, 1e-6))

    return Case(f"{dtype}-far-rows", make, dtype, "large", edges=("huge", "strides"))


def _promoted(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.normal(5, 33, dtype=dtype), m.normal(33), m.normal(33, dtype=dtype), 1e-6))

    return Case(f"{dtype}-weight-float32", make, "float32", "tiny")


def _gradient(dtype: str, *shape: int, weighted: bool = True) -> Case:
    def make(m: Maker) -> Call:
        grad, x = m.normal(*shape, dtype=dtype), m.normal(*shape, dtype=dtype)
        return Call((grad, x, *((m.normal(shape[-1], dtype=dtype) if weighted else None) for _ in range(2)), 1e-5))

    return Case(
        f"{dtype}-{sizes(shape)}-gradients{'-unweighted' * (not weighted)}",
        make,
        dtype,
        size_of(shape),
        function="layer_norm_backward",
        compiled=shape in ((100, 128), (3, 4096), (2, 16384)) and weighted,
        tolerance=GRADIENT[dtype],
    )


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in DTYPES:
        for shape in SHAPES + LARGE:
            yield _plain(dtype, *shape)
        yield _plain(dtype, 4, 100, weighted=False)
        yield _plain(dtype, 6, 50, edges=True)
        yield _strided(dtype)
        for shape in ((3, 7), (0, 5), (100, 128), (3, 4096), (2, 16384), (20000, 4096), (262144, 128)):
            yield _gradient(dtype, *shape)
        yield _gradient(dtype, 9, 33, weighted=False)
    yield _far("bfloat16")
    yield _promoted("float16")
    yield _promoted("bfloat16")
