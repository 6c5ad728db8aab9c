"""Tiles of quantized weights as operands of a matrix product."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.chunks import codes8, window8
from rocmend.kernels.common.packing import scale_of, value_of, values
from rocmend.kernels.language import INTERPRETED, exact, narrow


@triton.jit
def weight_tile(
    rows, scale_rows, bias_rows, first, columns, row_mask, dtype: tl.constexpr,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Return weights [ROWS, COLUMNS] in ``dtype``, 0 outside.

    Args:
        rows: Pointers to the first word of each row, [ROWS, 1].
        scale_rows: Pointers to the first scale of each row, [ROWS, 1].
        bias_rows: Pointers to the first bias of each row, [ROWS, 1]; None but for affine.
        first: First column; a multiple of COLUMNS.
        columns: Columns of the matrix.
        row_mask: Rows that exist, [ROWS, 1].
        dtype: Of the weights.
        MODE: Of the format.
        BITS: Of the format.
        GROUP: Of the format.
        ROWS: Of the tile.
        COLUMNS: Of the tile, a multiple of 8; a power of two.
        WIDE: Scale in fp32 and round once; otherwise in ``dtype`` where that is exact but for its own roundings.
    """
    GROUPS: tl.constexpr = COLUMNS // GROUP if COLUMNS > GROUP else 1
    if 32 % BITS == 0:
        CODES: tl.constexpr = 32 // BITS
        word = first // CODES + tl.arange(0, COLUMNS // CODES)
        packed = tl.load(rows + word[None, :], mask=row_mask & (word * CODES < columns)[None, :], other=0)
        # Of floats, those of fp32 are scaled without being rounded first.
        value = values(packed, ROWS, COLUMNS // CODES, MODE, BITS, dtype if MODE == "affine" else tl.float32)
    else:
        chunk = first // 8 + tl.arange(0, COLUMNS // 8)
        window = window8(rows, chunk[None, :], row_mask & (chunk * 8 < columns)[None, :], BITS)
        value = value_of(codes8(window[:, :, None], tl.arange(0, 8)[None, None, :], BITS), MODE)
        if not INTERPRETED:
            value = value.to(dtype)
    value = tl.reshape(value, [ROWS, GROUPS, COLUMNS // GROUPS])
    group = first // GROUP + tl.arange(0, GROUPS)
    exists = row_mask & (group * GROUP < columns)[None, :]
    raw = tl.load(scale_rows + group[None, :], mask=exists, other=0)
    if MODE == "affine":
        bias = tl.load(bias_rows + group[None, :], mask=exists, other=0)
        if WIDE or INTERPRETED or raw.dtype != dtype:
            value = value.to(tl.float32) * raw.to(tl.float32)[:, :, None] + bias.to(tl.float32)[:, :, None]
            value = narrow(value, dtype)
        else:
            value = value * raw[:, :, None] + bias[:, :, None]
    else:
        value = value.to(tl.float32) * scale_of(raw, MODE)[:, :, None]
        # Six bits of a fraction at most.
        value = exact(value, dtype) if dtype == tl.bfloat16 else narrow(value, dtype)
    return tl.reshape(value, [ROWS, COLUMNS])
