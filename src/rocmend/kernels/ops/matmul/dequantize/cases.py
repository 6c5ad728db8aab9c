"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.common.formats import AFFINE_BITS, AFFINE_GROUPS, format_of
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.ops.matmul.quantize.cases import FLOAT_MODES, each_format, weights_case
from rocmend.kernels.suite import Call, Case, Maker


def _plain(
    dtype: str, shape: tuple[int, ...], mode: str, bits: int | None = None, group: int | None = None, **marks: bool
) -> Case:
    form = format_of("dequantize", mode, bits, group)

    def make(m: Maker) -> Call:
        words = m.integers(-(1 << 31), 1 << 31, *shape[:-1], form.words(shape[-1]))
        of_groups = (*shape[:-1], shape[-1] // form.group_size)
        named = {"global_scale": m.of(3.7, "float32")} if marks.get("scaled") else {}
        if form.affine:
            draw = m.edges if marks.get("edges") else m.normal
            return Call((words, draw(*of_groups, dtype=dtype), m.normal(*of_groups, dtype=dtype), group, bits, mode))
        # Powers of two whose products are normal numbers of fp32; every one of them with `edges`.
        low, high = (0, 256) if form.mode == "nvfp4" or marks.get("edges") else (20, 230)
        scales = m.integers(low, high, *of_groups, dtype="uint8")
        return Call((words, scales, None, group, bits, mode), {**named, "dtype": BY_NAME[dtype]})

    return weights_case(make, dtype, shape, (mode, bits, group), marks)


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format of each type."""
    return each_format(_plain)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for bits in AFFINE_BITS:
        for index, group in enumerate(AFFINE_GROUPS):
            yield _plain(FLOATS[(bits + index) % 3], (3, 7, 128), "affine", bits, group)
        yield _plain(FLOATS[bits % 3], (8, 1024), "affine", bits, 64)
    for dtype in FLOATS:
        yield _plain(dtype, (0, 64), "affine")
        yield _plain(dtype, (1, 64), "affine")
        yield _plain(dtype, (4096, 14336), "affine")
        for mode in FLOAT_MODES:
            yield _plain(dtype, (5, 96), mode)
            yield _plain(dtype, (8, 1024), mode)
            yield _plain(dtype, (4096, 4096), mode)
        yield _plain(dtype, (5, 96), "nvfp4", scaled=True)
    yield _plain("float16", (9, 128), "affine", 4, 32, edges=True)
    yield _plain("float16", (16, 512), "mxfp4", edges=True)
    yield _plain("bfloat16", (17, 128 * 1024 * 1024), "affine")
