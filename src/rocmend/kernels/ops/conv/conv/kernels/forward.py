"""Implicit GEMM: output pixels by output channels, summed over taps and input channels."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow
from rocmend.kernels.ops.conv.conv.kernels.geometry import divided, taps_of_phase


@triton.jit
def forward_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr,
    batch, channels, outputs, splits, split_stride,
    x_d, x_h, x_w, y_d, y_h, y_w, k_d, k_h, k_w,
    stride_d, stride_h, stride_w, pad_d, pad_h, pad_w,
    dil_d, dil_h, dil_w, in_d, in_h, in_w,
    phase_d, phase_h, phase_w, step_d, step_h, step_w,
    xs_n, xs_d, xs_h, xs_w, xs_c, ys_n, ys_d, ys_h, ys_w, ys_c, ws_o, ws_t, ws_c,
    d_factor, d_shift, h_factor, h_shift, w_factor, w_shift,
    HAS_BIAS: tl.constexpr, FLIP: tl.constexpr, PHASED: tl.constexpr, FLAT: tl.constexpr, ONE: tl.constexpr,
    POINT: tl.constexpr, PLAIN: tl.constexpr, EVEN: tl.constexpr, BITS: tl.constexpr,
    WIDE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """``channels`` and ``outputs`` are those of one group; w is [groups·outputs, taps, channels].

    y is contiguous. POINT: one tap; PLAIN: at each pixel, and x has its pixels ``xs_w`` apart, as in a matrix product.
    Either the channels or the outputs lie side by side in w: an input gradient reads the weight as it is.

    With more than one split, each writes its part of the sum to a y of its own, in fp32.
    """
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, xs_c = xs_n * one, xs_d * one, xs_h * one, xs_w * one, xs_c * one
        ys_n, ys_d, ys_h, ys_w, ys_c = ys_n * one, ys_d * one, ys_h * one, ys_w * one, ys_c * one
    split = tl.program_id(1) % splits
    phase = tl.program_id(1) // splits
    group = tl.program_id(2)
    q_w = phase % phase_w
    q_h = (phase // phase_w) % phase_h
    q_d = phase // (phase_w * phase_h)
    # Output pixels of this phase along each axis.
    n_d = (y_d - q_d + phase_d - 1) // phase_d
    n_h = (y_h - q_h + phase_h - 1) // phase_h
    n_w = (y_w - q_w + phase_w - 1) // phase_w
    pixels = batch * n_d * n_h * n_w

    tiles_n = tl.cdiv(outputs, BLOCK_N)
    tiles_m = tl.num_programs(0) // tiles_n
    # Programs that run together share rows of x and columns of w.
    tile = tl.program_id(0)
    band = tile // (GROUP_M * tiles_n)
    height = tl.minimum(tiles_m - band * GROUP_M, GROUP_M)
    tile_m = band * GROUP_M + (tile % (GROUP_M * tiles_n)) % height
    tile_n = (tile % (GROUP_M * tiles_n)) // height
    if tile_m * BLOCK_M >= pixels:
        return

    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    o = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    if PHASED:
        rest_h = m // n_w
        rest_d = rest_h // n_h
        image = rest_d // n_d
    else:
        rest_h = divided(m, w_factor, w_shift)
        rest_d = divided(rest_h, h_factor, h_shift)
        image = divided(rest_d, d_factor, d_shift)
    i_w = m - rest_h * n_w
    i_h = rest_h - rest_d * n_h
    i_d = rest_d - image * n_d
    if PHASED:
        first_d, taps_d = taps_of_phase(q_d, stride_d, pad_d, dil_d, in_d, k_d)
        first_h, taps_h = taps_of_phase(q_h, stride_h, pad_h, dil_h, in_h, k_h)
        first_w, taps_w = taps_of_phase(q_w, stride_w, pad_w, dil_w, in_w, k_w)
        # All divisions leave nothing where there is a tap at all.
        at_d = (q_d * stride_d - pad_d + first_d * dil_d) // in_d + i_d * (phase_d * stride_d // in_d)
        at_h = (q_h * stride_h - pad_h + first_h * dil_h) // in_h + i_h * (phase_h * stride_h // in_h)
        at_w = (q_w * stride_w - pad_w + first_w * dil_w) // in_w + i_w * (phase_w * stride_w // in_w)
        by_d = step_d * dil_d // in_d
        by_h = step_h * dil_h // in_h
        by_w = step_w * dil_w // in_w
    else:
        first_d, taps_d, at_d, by_d = 0, k_d, i_d * stride_d - pad_d, dil_d
        first_h, taps_h, at_h, by_h = 0, k_h, i_h * stride_h - pad_h, dil_h
        first_w, taps_w, at_w, by_w = 0, k_w, i_w * stride_w - pad_w, dil_w

    if PLAIN:
        base = m * xs_w + group * channels * xs_c
    else:
        base = image * xs_n + at_d * xs_d + at_h * xs_h + at_w * xs_w + group * channels * xs_c
    w_row = (group * outputs + o).to(tl.int64) * ws_o
    row_in = m < pixels
    column_in = o < outputs
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    k = tl.arange(0, BLOCK_K)
    if FLAT:
        # Few channels: the taps along a row and their channels lie side by side in memory and are one axis.
        width = taps_w * channels
        blocks = tl.cdiv(width, BLOCK_K)
        rows = taps_d * taps_h
        step_from = split * tl.cdiv(rows * blocks, splits)
        step_to = tl.minimum(step_from + tl.cdiv(rows * blocks, splits), rows * blocks)
        if ONE:
            j_w = k // channels
            c = k - j_w * channels
            p_w = at_w[:, None] + (j_w * by_w)[None, :]
            along = (k < width)[None, :] & (p_w >= 0) & (p_w < x_w) & row_in[:, None]
            from_x = x_ptr + base[:, None] + (j_w * by_w * xs_w + c * xs_c)[None, :]
        for step in range(step_from, step_to):
            if ONE:
                row = step
                at = k
            else:
                row = step // blocks
                at = (step - row * blocks) * BLOCK_K + k
                j_w = at // channels
                c = at - j_w * channels
            j_d = row // taps_h
            j_h = row - j_d * taps_h
            p_d = at_d + j_d * by_d
            p_h = at_h + j_h * by_h
            row_ok = (p_d >= 0) & (p_d < x_d) & (p_h >= 0) & (p_h < x_h)
            shift = j_d * by_d * xs_d + j_h * by_h * xs_h
            if ONE:
                a = tl.load(from_x + shift, mask=along & row_ok[:, None], other=0.0)
            else:
                p_w = at_w[:, None] + (j_w * by_w)[None, :]
                inside = (row_ok & row_in)[:, None] & (at < width)[None, :] & (p_w >= 0) & (p_w < x_w)
                place = (j_w * by_w * xs_w + c * xs_c)[None, :]
                a = tl.load(x_ptr + (base + shift)[:, None] + place, mask=inside, other=0.0)
            t_d = first_d + j_d * step_d
            t_h = first_h + j_h * step_h
            t_w = first_w + j_w * step_w
            if FLIP:
                t_d, t_h, t_w = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - t_w
            w_at = ((t_d * k_h + t_h) * k_w + t_w) * ws_t + c * ws_c
            b = tl.load(
                w_ptr + w_row[None, :] + w_at[:, None], mask=(at < width)[:, None] & column_in[None, :], other=0.0
            )
            acc = dot(a, b, acc)
    elif POINT:
        # One tap: what is inside and where it begins never changes.
        inside = row_in
        if not PLAIN:
            inside &= (at_d >= 0) & (at_d < x_d) & (at_h >= 0) & (at_h < x_h) & (at_w >= 0) & (at_w < x_w)
        from_x = x_ptr + base[:, None] + (k * xs_c)[None, :]
        from_w = w_ptr + w_row[None, :] + (k * ws_c)[:, None]
        blocks = tl.cdiv(channels, BLOCK_K)
        step_from = split * tl.cdiv(blocks, splits)
        step_to = tl.minimum(step_from + tl.cdiv(blocks, splits), blocks)
        for start in range(step_from * BLOCK_K, step_to * BLOCK_K, BLOCK_K):
            if EVEN:
                a = tl.load(from_x + start * xs_c, mask=inside[:, None], other=0.0)
                b = tl.load(from_w + start * ws_c, mask=column_in[None, :], other=0.0)
            else:
                c_in = start + k < channels
                a = tl.load(from_x + start * xs_c, mask=inside[:, None] & c_in[None, :], other=0.0)
                b = tl.load(from_w + start * ws_c, mask=column_in[None, :] & c_in[:, None], other=0.0)
            acc = dot(a, b, acc)
    else:
        blocks = tl.cdiv(channels, BLOCK_K)
        all_taps = taps_d * taps_h * taps_w
        steps = all_taps * blocks
        step_from = split * tl.cdiv(steps, splits)
        step_to = tl.minimum(step_from + tl.cdiv(steps, splits), steps)
        if BITS:
            # Which taps fall inside, one bit each: what the loop then needs to know of a row.
            bits = tl.zeros((BLOCK_M,), tl.int32)
            for tap in range(all_taps):
                p_d = at_d + (tap // (taps_w * taps_h)) * by_d
                p_h = at_h + ((tap // taps_w) % taps_h) * by_h
                p_w = at_w + (tap % taps_w) * by_w
                inside = (p_d >= 0) & (p_d < x_d) & (p_h >= 0) & (p_h < x_h) & (p_w >= 0) & (p_w < x_w) & row_in
                bits |= inside.to(tl.int32) << tap
        # The place in the loops over taps and channels is carried along: divisions would cost more than the dot.
        tap = step_from // tl.maximum(blocks, 1)
        start = (step_from - tap * blocks) * BLOCK_K
        j_w = tap % tl.maximum(taps_w, 1)
        j_h = (tap // tl.maximum(taps_w, 1)) % tl.maximum(taps_h, 1)
        j_d = tap // tl.maximum(taps_w * taps_h, 1)
        for _ in range(step_from, step_to):
            if BITS:
                inside = ((bits >> tap) & 1) != 0
            else:
                p_d = at_d + j_d * by_d
                p_h = at_h + j_h * by_h
                p_w = at_w + j_w * by_w
                inside = (p_d >= 0) & (p_d < x_d) & (p_h >= 0) & (p_h < x_h) & (p_w >= 0) & (p_w < x_w) & row_in
            shift = j_d * by_d * xs_d + j_h * by_h * xs_h + j_w * by_w * xs_w
            if PHASED or FLIP:
                t_d = first_d + j_d * step_d
                t_h = first_h + j_h * step_h
                t_w = first_w + j_w * step_w
                if FLIP:
                    t_d, t_h, t_w = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - t_w
                w_at = ((t_d * k_h + t_h) * k_w + t_w) * ws_t
            else:
                w_at = tap * ws_t
            c = start + k
            x_at = x_ptr + (base + shift)[:, None] + (c * xs_c)[None, :]
            w_from = w_ptr + (w_row + w_at)[None, :] + (c * ws_c)[:, None]
            if EVEN:
                a = tl.load(x_at, mask=inside[:, None], other=0.0)
                b = tl.load(w_from, mask=column_in[None, :], other=0.0)
            else:
                a = tl.load(x_at, mask=inside[:, None] & (c < channels)[None, :], other=0.0)
                b = tl.load(w_from, mask=column_in[None, :] & (c < channels)[:, None], other=0.0)
            acc = dot(a, b, acc)
            start += BLOCK_K
            over = start >= channels
            start = tl.where(over, 0, start)
            tap += over.to(tl.int32)
            j_w += over.to(tl.int32)
            over = j_w == taps_w
            j_w = tl.where(over, 0, j_w)
            j_h += over.to(tl.int32)
            over = j_h == taps_h
            j_h = tl.where(over, 0, j_h)
            j_d += over.to(tl.int32)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + group * outputs + o, mask=column_in, other=0.0).to(tl.float32)[None, :]
    if PHASED:
        o_d = q_d + i_d * phase_d
        o_h = q_h + i_h * phase_h
        o_w = q_w + i_w * phase_w
        y_row = image * ys_n + o_d * ys_d + o_h * ys_h + o_w * ys_w
    else:
        y_row = m * ys_w
    y_at = y_ptr + split.to(tl.int64) * split_stride + y_row[:, None] + ((group * outputs + o) * ys_c)[None, :]
    tl.store(y_at, narrow(acc, y_ptr.dtype.element_ty), mask=row_in[:, None] & column_in[None, :])
