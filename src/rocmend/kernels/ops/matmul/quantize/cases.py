"""The suite's cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.common.formats import AFFINE_BITS, AFFINE_GROUPS, every_format
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes

FLOAT_MODES = ("mxfp4", "mxfp8", "nvfp4")


def weights_case(
    make: Callable[[Maker], Call],
    dtype: str,
    shape: tuple[int, ...],
    form: tuple[str, int | None, int | None],
    marks: dict[str, bool],
) -> Case:
    """Return a case of a mode, bits and group size, for ``dequantize`` too; small shapes are compiled."""
    mode, bits, group = form
    name = f"{dtype}-{mode}{bits or ''}{f'g{group}' if group else ''}-{sizes(shape)}"
    name += "".join(f"-{mark}" for mark, on in marks.items() if on)
    edges = tuple(mark for mark, on in marks.items() if on) + (("empty",) if 0 in shape else ())
    size = size_of(math.prod(shape), 4096, 1 << 20)
    return Case(name, make, dtype, size, compiled=size == "small" and not edges, edges=edges)


def each_format(plain: Callable[..., Case]) -> Iterator[Case]:
    """Yield each format of each type, to be compiled."""
    for dtype in FLOATS:
        for mode, bits, group in every_format():
            yield plain(dtype, (8, 1024), mode, *((bits, group) if mode == "affine" else ()))


def _plain(
    dtype: str, shape: tuple[int, ...], mode: str, bits: int | None = None, group: int | None = None, **marks: bool
) -> Case:
    def make(m: Maker) -> Call:
        w = m.edges(*shape, dtype=dtype) if marks.get("edges") else m.normal(*shape, dtype=dtype)
        if marks.get("strided"):
            w = w.transpose(0, 1)
        if marks.get("flat") and m.device.type != "meta":
            w[0], w[1], w[2] = 0.0, 5.0, w[2].abs()
        return Call((w, group, bits, mode), {"global_scale": m.of(3.7, "float32")} if marks.get("scaled") else {})

    return weights_case(make, dtype, shape, (mode, bits, group), marks)


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format of each type."""
    return each_format(_plain)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for bits in AFFINE_BITS:
        for index, group in enumerate(AFFINE_GROUPS):
            yield _plain(FLOATS[(bits + index) % 3], (3, 7, 128), "affine", bits, group, flat=index == 0)
        yield _plain(FLOATS[bits % 3], (8, 1024), "affine", bits, 64)
        yield _plain(FLOATS[(bits + 1) % 3], (9, 128), "affine", bits, 32, edges=True)
    for dtype in FLOATS:
        yield _plain(dtype, (0, 64), "affine")
        yield _plain(dtype, (1, 64), "affine")
        yield _plain(dtype, (64, 3, 64), "affine", strided=True)
        yield _plain(dtype, (4096, 14336), "affine")
        for mode in FLOAT_MODES:
            yield _plain(dtype, (5, 96), mode, flat=True)
            yield _plain(dtype, (8, 1024), mode)
            yield _plain(dtype, (9, 160), mode, edges=True)
            yield _plain(dtype, (4096, 4096), mode)
        yield _plain(dtype, (5, 96), "nvfp4", scaled=True)
    yield _plain("bfloat16", (17, 128 * 1024 * 1024), "affine")
