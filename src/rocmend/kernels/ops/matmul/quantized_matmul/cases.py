"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.common.formats import AFFINE_GROUPS, every_format
from rocmend.kernels.ops.matmul.quantized_matmul import MOST_ROWS
from rocmend.kernels.ops.matmul.quantized_matmul.rules import FEWEST
from rocmend.kernels.suite import Call, Case, Maker, Size

GROUPS = {"mxfp4": 32, "mxfp8": 32, "nvfp4": 16}


def _weights(
    m: Maker, lead: tuple[int, ...], rows: int, columns: int, dtype: str, mode: str, bits: int, group: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return random words with scales that keep the weights near one."""
    words = m.integers(-(2**31), 2**31, *lead, rows, columns * bits // 32)
    shape = (*lead, rows, columns // group)
    if mode == "affine":
        top = float(2**bits - 1)
        scales = m.normal(*shape, dtype=dtype, scale=1.0 / top)
        return words, scales, m.normal(*shape, dtype=dtype, scale=0.5)
    # Powers of two from 1/8 to 1 (E8M0), or numbers from 1/8 to 1 (E4M3).
    low, high = (124, 128) if mode.startswith("mx") else (0x20, 0x38)
    if mode == "mxfp8":
        # Two codes are NaN, 0x7f and 0xff: keep one bit of the exponent off.
        words = words & torch.tensor(-0x40404041, dtype=torch.int32, device=words.device)
    return words, m.integers(low, high, *shape, dtype="uint8"), None


def _case(
    dtype: str,
    rows: tuple[int, ...],
    n: int,
    k: int,
    *,
    mode: str = "affine",
    bits: int = 4,
    group: int = 64,
    transpose: bool = True,
    lead: tuple[int, ...] = (),
    scale_dtype: str | None = None,
    compiled: bool = False,
    size: Size | None = None,
) -> Case:
    def make(m: Maker) -> Call:
        w = _weights(m, lead, *((n, k) if transpose else (k, n)), scale_dtype or dtype, mode, bits, group)
        return Call((m.normal(*rows, k, dtype=dtype), *w, transpose, group, bits, mode))

    fmt = f"b{bits}g{group}" if mode == "affine" else mode
    kind = "" if transpose else "-plain"
    batch = f"-w{'x'.join(map(str, lead))}" if lead else ""
    name = f"{dtype}-{fmt}{kind}-{'x'.join(map(str, (*rows, k)))}-{n}{batch}"
    if scale_dtype:
        name += f"-scales-{scale_dtype}"
    marks = tuple(mark for mark, on in (("empty", 0 in (*rows, n, k)), ("one", 1 in rows), ("odd", n % 2 == 1)) if on)
    out = "float32" if scale_dtype else dtype
    return Case(name, make, out, size or ("tiny" if n * k <= 8192 else "small"), compiled=compiled, edges=marks)


def _strided(dtype: str, rows: int) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(128, 2, rows, dtype=dtype).permute(1, 2, 0)
        return Call((x, *_weights(m, (), 24, 128, dtype, "affine", 4, 64)))

    return Case(f"{dtype}-permuted-{rows}", make, dtype, "tiny", edges=("strides",))


def _rows_apart(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(3, 4096, dtype=dtype)[:, 1000:1128]
        return Call((x, *_weights(m, (), 24, 128, dtype, "affine", 4, 64)))

    return Case(f"{dtype}-rows-apart", make, dtype, "tiny", edges=("strides",))


def _nan(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(3, 128, dtype=dtype)
        if x.device.type != "meta":
            x[1, 77] = float("nan")
        return Call((x, *_weights(m, (), 24, 128, dtype, "affine", 4, 64)))

    return Case(f"{dtype}-nan", make, dtype, "tiny", edges=("nan",))


def _ranged(rows: int, n: int, k: int, exponent: int) -> Case:
    """Return a case whose x is about as large as a power of two; scales bring results back to the middle."""

    def make(m: Maker) -> Call:
        back = 2.0 ** (-exponent // 2)
        words = m.integers(-(2**31), 2**31, n, k // 8)
        scales, biases = (m.normal(n, k // 64, dtype="bfloat16", scale=scale * back) for scale in (1 / 15, 0.5))
        return Call((m.normal(rows, k, dtype="bfloat16", scale=2.0**exponent), words, scales, biases))

    return Case(f"bfloat16-{rows}x{k}-{n}-2^{exponent}", make, "bfloat16", "large", edges=("range",))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _formats()
    yield from _shapes()
    yield from _kernels()
    yield from _real()
    yield from _tiles()
    yield from _walks()
    yield from _large()


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format and type of x with rows of each class of tuning records."""
    classes = (FEWEST, *MOST_ROWS, 2 * MOST_ROWS[-1])
    for mode, bits, group in every_format():
        for dtype in FLOATS:
            for rows in (1, FEWEST, 16) if dtype == "float32" else classes:
                for transpose in (True, False):
                    yield _case(
                        dtype, (rows,), 1024, 2048, mode=mode, bits=bits, group=group, transpose=transpose,
                        compiled=True, size="large",
                    )  # fmt: skip


def _formats() -> Iterator[Case]:
    for dtype in FLOATS:
        for bits in (1, 2, 3, 4, 5, 6, 8):
            # Each of the three sizes of a group with each type, and each with one row and with many, in turn.
            few, many, plain = (AFFINE_GROUPS[(bits + FLOATS.index(dtype) + turn) % 3] for turn in range(3))
            yield _case(dtype, (1,), 33, 256, bits=bits, group=few)
            yield _case(dtype, (18,), 33, 256, bits=bits, group=many)
            yield _case(dtype, (2,), 128, 33, bits=bits, group=plain, transpose=False)
        for mode, group in GROUPS.items():
            bits = 8 if mode == "mxfp8" else 4
            for rows in (1, 18) if dtype == "bfloat16" else (3,):
                yield _case(dtype, (rows,), 33, 192, mode=mode, bits=bits, group=group)
            yield _case(dtype, (3,), 128, 33, mode=mode, bits=bits, group=group, transpose=False)


def _shapes() -> Iterator[Case]:
    for dtype in FLOATS:
        yield _case(dtype, (), 17, 192)
        yield _case(dtype, (0,), 16, 128)
        yield _case(dtype, (3,), 0, 128)
        yield _case(dtype, (3,), 16, 0)
        yield _case(dtype, (2, 1, 5), 1, 64)
        yield _case(dtype, (9,), 70, 320)
        yield _case(dtype, (40,), 70, 320)
        yield _case(dtype, (2, 3), 40, 128, lead=(2,))
        yield _case(dtype, (2, 1, 3), 24, 64, lead=(1, 2))
        yield _case(dtype, (3,), 64, 40, lead=(2,), transpose=False)
        yield _strided(dtype, 3)
        yield _strided(dtype, 20)
        yield _rows_apart(dtype)
        yield _nan(dtype)
    yield _case("bfloat16", (2,), 24, 128, scale_dtype="float32")
    yield _case("float16", (20,), 24, 128, scale_dtype="float32")


def _kernels() -> Iterator[Case]:
    """Yield cases of the kernels that only some targets take by themselves."""
    for dtype in ("float16", "bfloat16"):
        few = [_case(dtype, (2, 1, 5), 1, 64), _case(dtype, (2, 3), 40, 128, lead=(2,)), _case(dtype, (9,), 70, 320)]
        few += [_case(dtype, (2, 1, 3), 24, 64, lead=(1, 2)), _strided(dtype, 3), _rows_apart(dtype), _nan(dtype)]
        for kernel in ("lanes", "kept", "groups"):
            yield from (case.by(kernel) for case in few)
        for bits in (1, 2, 3, 4, 5, 6, 8):
            group = AFFINE_GROUPS[(bits + FLOATS.index(dtype) + 1) % 3]
            yield _case(dtype, (3 if 32 % bits == 0 else 18,), 33, 256, bits=bits, group=group).by("lanes")
            for kernel in ("kept", "groups") if bits in {2, 4, 8} else ():
                yield _case(dtype, (11,), 33, 256, bits=bits, group=group).by(kernel)
        for mode, group in GROUPS.items():
            rows, bits = 18 if dtype == "bfloat16" else 3, 8 if mode == "mxfp8" else 4
            yield _case(dtype, (rows,), 33, 192, mode=mode, bits=bits, group=group).by("lanes")


def _real() -> Iterator[Case]:
    """Yield shapes that models have; what is compiled for every target, each tuning record among them."""
    for dtype in ("bfloat16", "float16"):
        for bits in (4, 8):
            for rows in (1, 8, 16, 32, 48, 200, 512):
                yield _case(dtype, (rows,), 4096, 4096, bits=bits, compiled=True, size="large")
        for bits in (2, 3, 5, 6):
            for rows in (1, 8, 32, 512):
                yield _case(dtype, (rows,), 1024, 4096, bits=bits, compiled=dtype == "bfloat16", size="large")
        for mode, group in GROUPS.items():
            for rows in (1, 48, 512):
                bits = 8 if mode == "mxfp8" else 4
                yield _case(
                    dtype, (rows,), 2048, 2880, mode=mode, bits=bits, group=group,
                    compiled=dtype == "bfloat16", size="large",
                )  # fmt: skip
        for rows in (1, 64, 200, 512):
            yield _case(dtype, (rows,), 2048, 4096, transpose=False, compiled=dtype == "bfloat16", size="large")
    for rows in (1, 48):
        yield _case("float32", (rows,), 2048, 2048, compiled=True, size="large")
    # Rows of x that are no tile's, and both groups of each width that wgmma's operand is unpacked from.
    for rows, n, k, bits, group in (
        (9, 14336, 4096, 4, 64), (33, 1280, 1536, 4, 128), (100, 4096, 4096, 4, 64), (300, 2176, 1024, 8, 32),
        (515, 128, 512, 4, 64), (200, 4096, 1024, 4, 64), (32, 2048, 2048, 4, 64), (129, 4224, 7168, 4, 128),
    ):  # fmt: skip
        yield _case("bfloat16", (rows,), n, k, bits=bits, group=group, size="large")


def _tiles() -> Iterator[Case]:
    """Yield groups that are wider than a tile, and codes that straddle words."""
    for dtype in ("bfloat16", "float16"):
        for rows in (16, 32, 48, 512):
            yield _case(dtype, (rows,), 2048, 2048, group=128, compiled=True, size="large")
    yield _case("float32", (16,), 2048, 2048, group=128, compiled=True, size="large")
    for rows in (16, 200, 512):
        yield _case("bfloat16", (rows,), 4096, 2048, bits=3, transpose=False, compiled=True, size="large")


def _walks() -> Iterator[Case]:
    """Yield what kernels take whose programs walk over tiles of weights."""
    # Tiles that do not come out even among programs, and K in two to seven parts.
    for n, k, group in ((8208, 4096, 64), (14336, 4096, 128), (16400, 5120, 64), (12304, 3072, 128), (4256, 14336, 64)):
        yield _case("bfloat16", (1,), n, k, group=group, size="large")
    # The same with 8 bits, and with several rows of x, in parts of their own.
    for n, k in ((14336, 4096), (16400, 2048)):
        yield _case("bfloat16", (1,), n, k, bits=8, size="large")
    for rows, n, k, group in (
        (8, 14336, 4096, 64), (2, 12304, 4096, 128), (5, 16400, 3072, 64), (7, 16400, 5120, 64), (3, 8192, 8192, 128),
        (8, 28672, 8192, 64), (6, 36880, 8192, 64), (4, 5136, 8192, 128),
    ):  # fmt: skip
        yield _case("bfloat16", (rows,), n, k, group=group, size="large")
    for exponent in (100, -120):
        yield _ranged(8, 12304, 4096, exponent)


def _large() -> Iterator[Case]:
    """Yield more than 2³¹ weights."""
    yield _case("bfloat16", (1,), 540_000, 4096, size="large")
    yield _case("bfloat16", (24,), 540_000, 4096, size="large")
