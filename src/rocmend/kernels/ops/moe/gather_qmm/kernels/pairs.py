"""Few rows: each row of x against some rows of its expert's weights, which are read once; bound by that reading."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.chunks import codes8, offset8, whole8, window8
from rocmend.kernels.common.packing import scale_of, value_of
from rocmend.kernels.language import narrow


@triton.jit
def _sums(
    total, x, x_sums, w_rows, scale_rows, bias_rows, chunk, group, exists, groups,
    MODE: tl.constexpr, BITS: tl.constexpr,
):  # fmt: skip
    """Add a block of columns to each row's product, by chunk of eight columns: fp32 [rows, groups, chunks of a group].

    Args:
        total: What it is added to.
        x: fp32 [8, 1, groups, chunks], times ``offset8`` for affine: the eight lie in one lane's registers.
        x_sums: Of each chunk, [groups, chunks].
        w_rows: Pointers to the first words, [rows, 1, 1].
        scale_rows: Pointers to the first scales, [rows, 1].
        bias_rows: Pointers to the first biases, [rows, 1].
        chunk: Of eight columns, [groups, chunks].
        group: [groups].
        exists: Rows that exist, [rows, 1].
        groups: Of a row.
        MODE: Of the format.
        BITS: Of the format.
    """
    there = exists & (group < groups)[None, :]
    window = window8(w_rows, chunk[None, :, :], there[:, :, None], BITS)[None, :, :, :]
    scale = scale_of(tl.load(scale_rows + group[None, :], mask=there, other=0), MODE)
    place = tl.arange(0, 8)[:, None, None, None]
    if MODE == "affine":
        bias = tl.load(bias_rows + group[None, :], mask=there, other=0).to(tl.float32)
        total += tl.sum(whole8(window, place, BITS) * x, axis=0) * scale[:, :, None]
        total += x_sums[None, :, :] * bias[:, :, None]
    else:
        total += tl.sum(value_of(codes8(window, place, BITS), MODE) * x, axis=0) * scale[:, :, None]
    return total


@triton.jit
def pairs_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, rhs_ptr,
    m, n, k, words, groups, divisor,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr,
    HAS_LHS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """BN outputs of a row of a pair: ``x @ w.T``, or ``silu(x @ w.T) * (x @ up.T)``; words and groups are a row's."""
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
    w_rows = (w_ptr + weight * words)[:, None, None]
    scale_rows = (scales_ptr + weight * groups)[:, None]
    bias_rows = scale_rows
    up_rows = w_rows
    up_scale_rows = scale_rows
    up_bias_rows = scale_rows
    if MODE == "affine":
        bias_rows = (biases_ptr + weight * groups)[:, None]
    if GATED:
        up_rows = (up_ptr + weight * words)[:, None, None]
        up_scale_rows = (up_scales_ptr + weight * groups)[:, None]
        if MODE == "affine":
            up_bias_rows = (up_biases_ptr + weight * groups)[:, None]
    x_row = x_ptr + (matrix * m + row % m) * k
    GROUPS: tl.constexpr = BK // GROUP
    CHUNKS: tl.constexpr = GROUP // 8
    total = tl.zeros([BN, GROUPS, CHUNKS], tl.float32)
    total_up = tl.zeros([BN, GROUPS, CHUNKS], tl.float32)
    place = tl.arange(0, 8)[:, None, None]
    for first in range(0, k, BK):
        group = first // GROUP + tl.arange(0, GROUPS)
        chunk = group[:, None] * CHUNKS + tl.arange(0, CHUNKS)[None, :]
        at = chunk[None, :, :] * 8 + place
        x = tl.load(x_row + at, mask=(group < groups)[None, :, None], other=0.0).to(tl.float32)
        x_sums = tl.sum(x, axis=0)
        if MODE == "affine":
            x = x * offset8(place, BITS)
        x = x[:, None, :, :]
        total = _sums(total, x, x_sums, w_rows, scale_rows, bias_rows, chunk, group, exists, groups, MODE, BITS)
        if GATED:
            total_up = _sums(
                total_up, x, x_sums, up_rows, up_scale_rows, up_bias_rows, chunk, group, exists, groups, MODE, BITS
            )
    out = tl.sum(tl.sum(total, axis=2), axis=1)
    if GATED:
        out = out / (1.0 + tl.exp(-out)) * tl.sum(tl.sum(total_up, axis=2), axis=1)
    tl.store(out_ptr + row * n + column, narrow(out, out_ptr.dtype.element_ty), mask=column < n)
