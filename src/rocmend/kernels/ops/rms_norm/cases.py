"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.suite import Call, Case, Maker, Size

DTYPES = ("float32", "float16", "bfloat16")


def _plain(dtype: str, *shape: int, weighted: bool = True, edges: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = m.edges(*shape, dtype=dtype) if edges else m.normal(*shape, dtype=dtype)
        return Call((x, m.normal(shape[-1], dtype=dtype) if weighted else None, 1e-5))

    name = f"{dtype}-{'x'.join(map(str, shape))}{'' if weighted else '-unweighted'}{'-edges' if edges else ''}"
    marks = tuple(mark for mark, on in (("nan", edges), ("empty", 0 in shape), ("one", 1 in shape)) if on)
    size: Size = "tiny" if max(shape) <= 128 else "large" if max(shape) > 20000 or shape[0] > 4000 else "small"
    return Case(name, make, dtype, size, compiled=shape in ((4, 4096), (2, 16384)) and weighted, edges=marks)


def _strided(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.normal(96, 7, 3, dtype=dtype).permute(2, 1, 0), m.normal(96, dtype=dtype), 1e-6))

    return Case(f"{dtype}-permuted", make, dtype, "tiny", edges=("strides",))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in DTYPES:
        for shape in (
            (1, 1),
            (3, 7),
            (2, 3, 64),
            (0, 64),
            (4, 4096),
            (2, 16384),
            (5, 8193),
            (40000, 4096),
            (3, 300_001),
        ):
            yield _plain(dtype, *shape)
        yield _plain(dtype, 4, 100, weighted=False)
        yield _plain(dtype, 6, 50, edges=True)
        yield _strided(dtype)
