"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.formats import AFFINE_BITS, AFFINE_GROUPS, every_format
from rocmend.kernels.suite import Call, Case, Maker, Size

DTYPES = ("float32", "float16", "bfloat16")
FLOATS = ("mxfp4", "mxfp8", "nvfp4")


def _plain(
    dtype: str, shape: tuple[int, ...], mode: str, bits: int | None = None, group: int | None = None, **marks: bool
) -> Case:
    def make(m: Maker) -> Call:
        w = m.edges(*shape, dtype=dtype) if marks.get("edges") else m.normal(*shape, dtype=dtype)
        if marks.get("strided"):
            w = w.transpose(0, 1)
        if marks.get("flat") and m.device.type != "meta":
            w[0], w[1], w[2] = 0.0, 5.0, w[2].abs()
        named = {"global_scale": m.of(3.7, "float32")} if marks.get("scaled") else {}
        return Call((w, group, bits, mode), named)

    name = f"{dtype}-{mode}{bits or ''}{f'g{group}' if group else ''}-{'x'.join(map(str, shape))}"
    name += "".join(f"-{mark}" for mark, on in marks.items() if on)
    large = 1
    for size in shape:
        large *= size
    edges = tuple(mark for mark, on in marks.items() if on) + (("empty",) if 0 in shape else ())
    span: Size = "large" if large > 1 << 20 else "tiny" if large <= 4096 else "small"
    return Case(name, make, dtype, span, compiled=span == "small" and not edges, edges=edges)


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format of each type."""
    for dtype in DTYPES:
        for mode, bits, group in every_format():
            given = (bits, group) if mode == "affine" else ()
            yield _plain(dtype, (8, 1024), mode, *given)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for bits in AFFINE_BITS:
        for index, group in enumerate(AFFINE_GROUPS):
            yield _plain(DTYPES[(bits + index) % 3], (3, 7, 128), "affine", bits, group, flat=index == 0)
        yield _plain(DTYPES[bits % 3], (8, 1024), "affine", bits, 64)
        yield _plain(DTYPES[(bits + 1) % 3], (9, 128), "affine", bits, 32, edges=True)
    for dtype in DTYPES:
        yield _plain(dtype, (0, 64), "affine")
        yield _plain(dtype, (1, 64), "affine")
        yield _plain(dtype, (64, 3, 64), "affine", strided=True)
        yield _plain(dtype, (4096, 14336), "affine")
        for mode in FLOATS:
            yield _plain(dtype, (5, 96), mode, flat=True)
            yield _plain(dtype, (8, 1024), mode)
            yield _plain(dtype, (9, 160), mode, edges=True)
            yield _plain(dtype, (4096, 4096), mode)
        yield _plain(dtype, (5, 96), "nvfp4", scaled=True)
    yield _plain("bfloat16", (17, 128 * 1024 * 1024), "affine")
