"""The suite's cases."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from rocmend.kernels.common.formats import every_format
from rocmend.kernels.ops.matmul.quantized_projections import MOST_ROWS
from rocmend.kernels.suite import Call, Case, Maker, Size

GROUPS = {"mxfp4": 32, "mxfp8": 32, "nvfp4": 16}
REFERENCE = "rocmend.kernels.ops.matmul.quantized_projections.reference"


def _weights(
    m: Maker, rows: int, columns: int, dtype: str, mode: str, bits: int, group: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return random words with scales that keep products near one."""
    words = m.integers(-(2**31), 2**31, rows, columns * bits // 32)
    shape = (rows, columns // group)
    if mode == "affine":
        # The mean code times the scale is taken off again, and a product has a deviation of about one.
        top, wide = float(2**bits - 1), columns**-0.5
        return words, m.normal(*shape, dtype=dtype, scale=3 * wide / top), m.normal(*shape, dtype=dtype, scale=wide)
    low, high = (119, 123) if mode.startswith("mx") else (0x08, 0x20)
    if mode == "mxfp8":
        # Two codes are NaN, 0x7f and 0xff: keep one bit of the exponent off.
        words = words & torch.tensor(-0x40404041, dtype=torch.int32, device=words.device)
    return words, m.integers(low, high, *shape, dtype="uint8"), None


def _case(
    dtype: str,
    rows: tuple[int, ...],
    columns: tuple[int, ...],
    k: int,
    *,
    gated: bool = False,
    mode: str = "affine",
    bits: int = 4,
    group: int = 64,
    compiled: bool = False,
    size: Size | None = None,
    strided: bool = False,
) -> Case:
    def make(m: Maker) -> Call:
        x = m.normal(*rows, k, dtype=dtype)
        if strided:
            x = m.normal(*rows, 2 * k, dtype=dtype)[..., ::2]
        weights = tuple([_weights(m, n, k, dtype, mode, bits, group) for n in columns])
        form = (group, bits, mode)
        return Call((x, *weights, *form) if gated else (x, weights, *form))

    fmt = f"b{bits}g{group}" if mode == "affine" else mode
    name = f"{'swiglu-' * gated}{dtype}-{fmt}-{'x'.join(map(str, (*rows, k)))}-{'+'.join(map(str, columns))}"
    total, few = sum(columns) * k, 1 < math.prod(rows) <= MOST_ROWS and 2 <= len(columns) <= 3
    return Case(
        name + "-strided" * strided, make, dtype, size or ("tiny" if total <= 16384 else "small"), compiled=compiled,
        function="quantized_swiglu" if gated else "quantized_matmul_many",
        reference=f"{REFERENCE}:{'quantized_swiglu' if gated else 'quantized_matmul_many'}",
        implementation="lanes" if few and dtype != "float32" else "",
        edges=tuple(mark for mark, on in (("empty", 0 in (*rows, *columns)), ("strides", strided)) if on),
    )  # fmt: skip


def _normed(
    dtype: str,
    rows: int,
    columns: tuple[int, ...],
    k: int,
    *,
    gated: bool = False,
    bits: int = 4,
    added: bool = True,
    compiled: bool = False,
    size: Size | None = None,
) -> Case:
    """Return a case with an RMSNorm first."""

    def make(m: Maker) -> Call:
        x, residual = m.normal(rows, k, dtype=dtype), m.normal(rows, k, dtype=dtype) if added else None
        weights = tuple([_weights(m, n, k, dtype, "affine", bits, 64) for n in columns])
        # A sum of two has a deviation of about 1.4: divided by that, and times a weight of about one.
        norm_weight = m.normal(k, dtype=dtype, scale=0.25) + 1
        return Call(
            (x, norm_weight, 1e-5, weights, 64, bits), {"residual": residual, "gated": gated, "keep": not added}
        )

    name = f"{'add-' * added}norm-{'swiglu-' * gated}{dtype}-b{bits}-{rows}x{k}-{'+'.join(map(str, columns))}"
    return Case(
        name, make, dtype, size or ("tiny" if sum(columns) * k <= 16384 else "small"), compiled=compiled,
        function="rms_norm_projections", reference=f"{REFERENCE}:rms_norm_projections",
    )  # fmt: skip


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format with one row and with a few."""
    for dtype in ("float32", "float16", "bfloat16"):
        for bits in (2, 4, 8):
            for k in (2048, 5120):
                for columns, gated in (((1024,), False), ((1024, 1024), True), ((1024, 1024, 1024), False)):
                    yield _normed(dtype, 1, columns, k, gated=gated, bits=bits, compiled=True, size="large")
    for mode, bits, group in every_format():
        for dtype in ("bfloat16", "float16"):
            for rows in (1, 8):
                for gated in (False, True):
                    yield _case(
                        dtype, (rows,), (1024, 1024), 2048, gated=gated, mode=mode, bits=bits, group=group,
                        compiled=True, size="large",
                    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in ("float32", "float16", "bfloat16"):
        yield _case(dtype, (1,), (33, 16, 5), 256)
        yield _case(dtype, (1, 1), (40, 24), 192, group=32)
        yield _case(dtype, (8,), (17, 16, 16), 128)
        yield _case(dtype, (2, 3), (7, 40), 320, bits=8)
        yield _case(dtype, (12,), (16, 16), 128)
        yield _case(dtype, (1,), (16,), 128)
        yield _case(dtype, (1,), (8, 8, 8, 8), 64)
        yield _case(dtype, (0,), (16, 8), 128)
        yield _case(dtype, (1,), (0, 8), 128)
        yield _case(dtype, (3,), (16, 8), 128, strided=True)
        for rows in (1, 5, 8, 11):
            yield _case(dtype, (rows,), (37, 37), 256, gated=True)
        yield _case(dtype, (1, 1), (8, 8), 128, gated=True, group=128)
        yield _case(dtype, (1,), (19, 19), 192, gated=True, strided=True, group=32, bits=8)
        yield _case(dtype, (1,), (3, 2), 64, bits=2)
        yield _case(dtype, (0,), (8, 8), 128, gated=True)
        yield _case(dtype, (2,), (24, 24), 64, gated=True, strided=True)
        for bits in (3, 6, 8):
            yield _case(dtype, (2,), (20, 20), 128, gated=True, bits=bits)
            yield _case(dtype, (2,), (20, 9), 128, bits=bits)
        for mode, group in GROUPS.items():
            bits = 8 if mode == "mxfp8" else 4
            yield _case(dtype, (2,), (20, 20), 128, gated=True, mode=mode, bits=bits, group=group)
            yield _case(dtype, (2,), (20, 9, 16), 128, mode=mode, bits=bits, group=group)
        for rows in (1, 3):
            yield _normed(dtype, rows, (33, 16, 20), 256)
            yield _normed(dtype, rows, (40,), 320, bits=8, added=False)
            yield _normed(dtype, rows, (37, 37), 192, gated=True)
        yield _normed(dtype, 1, (29, 24), 512, bits=2)
    for dtype in ("float16", "bfloat16"):
        yield _normed(dtype, 1, (4096, 1024, 1024), 4096, compiled=True, size="large")
        yield _normed(dtype, 1, (3072, 3072), 1024, gated=True, added=False, compiled=True, size="large")
        for rows in (1, 8):
            yield _case(dtype, (rows,), (4096, 1024, 1024), 4096, compiled=True, size="large")
            yield _case(dtype, (rows,), (3072, 3072), 1024, gated=True, compiled=True, size="large")
