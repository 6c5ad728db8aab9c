"""Few rows: each row of x against some rows of its expert's weights, which are read once; bound by that reading."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.chunks import codes8, offset8, whole8, window8
from rocmend.kernels.common.packing import scale_of, value_of
from rocmend.kernels.language import narrow


@triton.jit
def _sums(
    x, x_sums, w_rows, scale_rows, bias_rows, chunk, group, exists, groups,
    MODE: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Return what a block of columns adds to each row's product, by group: fp32 [rows, groups].

    Args:
        x: fp32 [groups, chunks of a group, 8], times ``offset8`` for affine.
        x_sums: Of each group, [groups].
        w_rows: Pointers to the first words, [rows, 1, 1].
        scale_rows: Pointers to the first scales, [rows, 1].
        bias_rows: Pointers to the first biases, [rows, 1].
        chunk: Of eight columns, [groups, chunks of a group].
        group: [groups].
        exists: Rows that exist, [rows, 1].
        groups: Of a row.
        MODE: Of the format.
        BITS: Of the format.
    """
    there = exists & (group < groups)[None, :]
    window = window8(w_rows, chunk[None, :, :], there[:, :, None], BITS)
    scale = scale_of(tl.load(scale_rows + group[None, :], mask=there, other=0), MODE)
    if MODE == "affine":
        bias = tl.load(bias_rows + group[None, :], mask=there, other=0).to(tl.float32)
        value = whole8(window[:, :, :, None], BITS)
        product = tl.sum(tl.sum(value * x[None, :, :, :], axis=3), axis=2)
        out = product * scale + x_sums[None, :] * bias
    else:
        value = value_of(codes8(window[:, :, :, None], tl.arange(0, 8)[None, None, None, :], BITS), MODE)
        out = tl.sum(tl.sum(value * x[None, :, :, :], axis=3), axis=2) * scale
    return out


@triton.jit
def pairs_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, rhs_ptr,
    m, n, k, divisor,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr,
    HAS_LHS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """BN outputs of a row of a pair: ``x @ w.T``, or ``silu(x @ w.T) * (x @ up.T)``."""
    blocks = tl.cdiv(n, BN)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    pair = row // m
    expert = tl.load(rhs_ptr + pair).to(tl.int64)
    if HAS_LHS:
        matrix = tl.load(lhs_ptr + pair).to(tl.int64)
    else:
        matrix = pair // divisor
    column = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    exists = (column < n)[:, None]
    weight = expert * n + column
    words = k // 32 * BITS + (k % 32) * BITS // 32
    w_rows = (w_ptr + weight * words)[:, None, None]
    scale_rows = (scales_ptr + weight * (k // GROUP))[:, None]
    bias_rows = scale_rows
    if MODE == "affine":
        bias_rows = (biases_ptr + weight * (k // GROUP))[:, None]
    x_row = x_ptr + (matrix * m + row % m) * k
    GROUPS: tl.constexpr = BK // GROUP
    CHUNKS: tl.constexpr = GROUP // 8
    total = tl.zeros([BN, GROUPS], tl.float32)
    total_up = tl.zeros([BN, GROUPS], tl.float32)
    for first in range(0, k, BK):
        group = first // GROUP + tl.arange(0, GROUPS)
        chunk = group[:, None] * CHUNKS + tl.arange(0, CHUNKS)[None, :]
        place = chunk[:, :, None] * 8 + tl.arange(0, 8)[None, None, :]
        x = tl.load(x_row + place, mask=place < k, other=0.0).to(tl.float32)
        x_sums = tl.sum(tl.sum(x, axis=2), axis=1)
        if MODE == "affine":
            x = x * offset8(BITS)[None, None, :]
        total += _sums(x, x_sums, w_rows, scale_rows, bias_rows, chunk, group, exists, k // GROUP, MODE, BITS)
        if GATED:
            up_rows = (up_ptr + weight * words)[:, None, None]
            up_scale_rows = (up_scales_ptr + weight * (k // GROUP))[:, None]
            up_bias_rows = up_scale_rows
            if MODE == "affine":
                up_bias_rows = (up_biases_ptr + weight * (k // GROUP))[:, None]
            total_up += _sums(
                x, x_sums, up_rows, up_scale_rows, up_bias_rows, chunk, group, exists, k // GROUP, MODE, BITS
            )
    out = tl.sum(total, axis=1)
    if GATED:
        out = out / (1.0 + tl.exp(-out)) * tl.sum(total_up, axis=1)
    tl.store(out_ptr + row * n + column, narrow(out, out_ptr.dtype.element_ty), mask=column < n)
