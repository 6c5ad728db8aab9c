"""Weight gradient: output channels by taps and input channels, summed over output pixels."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow


@triton.jit
def weight_kernel(
    x_ptr, dy_ptr, out_ptr,
    batch, channels, outputs, groups, per_split,
    x_d, x_h, x_w, y_d, y_h, y_w, k_d, k_h, k_w,
    stride_d, stride_h, stride_w, pad_d, pad_h, pad_w,
    dil_d, dil_h, dil_w, in_d, in_h, in_w,
    xs_n, xs_d, xs_h, xs_w, xs_c, ys_n, ys_d, ys_h, ys_w, ys_c,
    FLIP: tl.constexpr, PHASED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Out is [splits, groups·outputs, taps, channels]; each split sums ``per_split`` pixels."""
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, xs_c = xs_n * one, xs_d * one, xs_h * one, xs_w * one, xs_c * one
        ys_n, ys_d, ys_h, ys_w, ys_c = ys_n * one, ys_d * one, ys_h * one, ys_w * one, ys_c * one
    split = tl.program_id(1)
    group = tl.program_id(2)
    taps = k_d * k_h * k_w
    width = taps * channels
    tiles_n = tl.cdiv(width, BLOCK_N)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    o = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    o_in = o < outputs
    column_in = column < width
    c = column % channels
    tap = column // channels
    t_w = tap % k_w
    t_h = (tap // k_w) % k_h
    t_d = tap // (k_w * k_h)
    if FLIP:
        t_d, t_h, t_w = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - t_w
    reach_d = t_d * dil_d - pad_d
    reach_h = t_h * dil_h - pad_h
    reach_w = t_w * dil_w - pad_w
    x_column = (group * channels + c) * xs_c
    y_column = (group * outputs + o) * ys_c
    pixels = batch * y_d * y_h * y_w
    end = tl.minimum(pixels, (split + 1) * per_split)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(split * per_split, end, BLOCK_K):
        m = start + tl.arange(0, BLOCK_K)
        row_in = m < end
        o_w = m % y_w
        rest = m // y_w
        o_h = rest % y_h
        rest = rest // y_h
        o_d = rest % y_d
        image = rest // y_d
        y_row = image * ys_n + o_d * ys_d + o_h * ys_h + o_w * ys_w
        dy = tl.load(dy_ptr + y_row[:, None] + y_column[None, :], mask=row_in[:, None] & o_in[None, :], other=0.0)
        p_d = (o_d * stride_d)[:, None] + reach_d[None, :]
        p_h = (o_h * stride_h)[:, None] + reach_h[None, :]
        p_w = (o_w * stride_w)[:, None] + reach_w[None, :]
        inside = row_in[:, None] & column_in[None, :]
        if PHASED:
            inside &= (p_d % in_d == 0) & (p_h % in_h == 0) & (p_w % in_w == 0)
            p_d = p_d // in_d
            p_h = p_h // in_h
            p_w = p_w // in_w
        inside &= (p_d >= 0) & (p_d < x_d) & (p_h >= 0) & (p_h < x_h) & (p_w >= 0) & (p_w < x_w)
        x_at = (image * xs_n)[:, None] + p_d * xs_d + p_h * xs_h + p_w * xs_w + x_column[None, :]
        x = tl.load(x_ptr + x_at, mask=inside, other=0.0)
        acc = dot(tl.trans(dy), x, acc)
    row = (split * groups * outputs + group * outputs + o).to(tl.int64) * width
    tl.store(
        out_ptr + row[:, None] + column[None, :],
        narrow(acc, out_ptr.dtype.element_ty),
        mask=o_in[:, None] & column_in[None, :],
    )
