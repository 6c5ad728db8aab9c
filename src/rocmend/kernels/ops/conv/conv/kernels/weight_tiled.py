"""Weight gradient where channels fill a tile: a tile of output and input channels at one tap, summed over pixels."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow
from rocmend.kernels.ops.conv.conv.kernels.geometry import divided


@triton.jit
def _taken(x_at, p_w, x_w, inside, c_in, EVEN: tl.constexpr):
    """Return x at the pixels of a tap, zeros outside."""
    inside &= (p_w >= 0) & (p_w < x_w)
    if EVEN:
        return tl.load(x_at, mask=inside[:, None], other=0.0)
    return tl.load(x_at, mask=inside[:, None] & c_in[None, :], other=0.0)


@triton.jit
def weight_tiled_kernel(
    x_ptr, dy_ptr, out_ptr,
    channels, outputs, pixels, per_split,
    x_d, x_h, x_w, y_d, y_h, y_w, d_factor, d_shift, h_factor, h_shift, w_factor, w_shift,
    k_d, k_h, k_w, stride_d, stride_h, stride_w, pad_d, pad_h, pad_w, dil_d, dil_h, dil_w,
    xs_n, xs_d, xs_h, xs_w, ys,
    FLIP: tl.constexpr, PLAIN: tl.constexpr, DEEP: tl.constexpr, EVEN: tl.constexpr, EVEN_K: tl.constexpr,
    THREE: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Out is [splits, groups·outputs, taps, channels]; each split sums ``per_split`` pixels, whole blocks of them.

    The output's gradient has its pixels ``ys`` apart, and channels lie side by side in both. PLAIN: one tap at each
    pixel, and x has its pixels ``xs_w`` apart: a matrix product. THREE: three taps along a row, which share what is
    loaded of the gradient. DEEP: a depth axis. EVEN: tiles are full of channels, EVEN_K: blocks are full of pixels.
    """
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, ys = xs_n * one, xs_d * one, xs_h * one, xs_w * one, ys * one
    TAPS: tl.constexpr = 3 if THREE else 1
    split = tl.program_id(1)
    group = tl.program_id(2)
    tiles_c = tl.cdiv(channels, BLOCK_N)
    taps = k_d * k_h * k_w
    # Tiles of one block of output channels are neighbours: they read the same gradient.
    tiles_n = taps // TAPS * tiles_c
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    tap = tile_n // tiles_c * TAPS
    o = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    c = (tile_n % tiles_c) * BLOCK_N + tl.arange(0, BLOCK_N)
    o_in = o < outputs
    c_in = c < channels
    k = tl.arange(0, BLOCK_K)
    begin = split * per_split
    end = tl.minimum(pixels, begin + per_split)
    from_dy = dy_ptr + (k * ys)[:, None] + (group * outputs + o)[None, :]
    from_x = x_ptr + (group * channels + c)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if THREE:
        acc_1 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        acc_2 = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    if PLAIN:
        from_x += (k * xs_w)[:, None]
    else:
        t_w = tap % k_w
        t_h = (tap // k_w) % k_h
        t_d = tap // (k_w * k_h)
        step = dil_w
        if FLIP:
            t_d, t_h, t_w, step = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - t_w, -dil_w
        reach_d = t_d * dil_d - pad_d
        reach_h = t_h * dil_h - pad_h
        reach_w = t_w * dil_w - pad_w
        from_x += reach_d * xs_d + reach_h * xs_h + reach_w * xs_w
    for start in range(begin, end, BLOCK_K):
        m = start + k
        if EVEN and EVEN_K:
            dy = tl.load(from_dy + start * ys)
        elif EVEN:
            dy = tl.load(from_dy + start * ys, mask=(m < end)[:, None], other=0.0)
        else:
            dy = tl.load(from_dy + start * ys, mask=(m < end)[:, None] & o_in[None, :], other=0.0)
        if PLAIN:
            x_at = from_x + start * xs_w
            if EVEN and EVEN_K:
                x = tl.load(x_at)
            elif EVEN:
                x = tl.load(x_at, mask=(m < end)[:, None], other=0.0)
            else:
                x = tl.load(x_at, mask=(m < end)[:, None] & c_in[None, :], other=0.0)
            acc = dot(tl.trans(dy), x, acc)
        else:
            rest = divided(m, w_factor, w_shift)
            i_w = m - rest * y_w
            image = divided(rest, h_factor, h_shift)
            i_h = rest - image * y_h
            p_h = i_h * stride_h + reach_h
            p_w = i_w * stride_w + reach_w
            inside = (p_h >= 0) & (p_h < x_h) & (m < end)
            row = i_h * stride_h * xs_h + i_w * stride_w * xs_w
            if DEEP:
                rest = image
                image = divided(rest, d_factor, d_shift)
                i_d = rest - image * y_d
                p_d = i_d * stride_d + reach_d
                inside &= (p_d >= 0) & (p_d < x_d)
                row += i_d * stride_d * xs_d
            x_at = from_x + (image * xs_n + row)[:, None]
            x = _taken(x_at, p_w, x_w, inside, c_in, EVEN)
            if THREE:
                x_1 = _taken(x_at + step * xs_w, p_w + step, x_w, inside, c_in, EVEN)
                x_2 = _taken(x_at + 2 * step * xs_w, p_w + 2 * step, x_w, inside, c_in, EVEN)
                dy_t = tl.trans(dy)
                acc = dot(dy_t, x, acc)
                acc_1 = dot(dy_t, x_1, acc_1)
                acc_2 = dot(dy_t, x_2, acc_2)
            else:
                acc = dot(tl.trans(dy), x, acc)
    out_row = ((split * tl.num_programs(2) + group) * outputs + o).to(tl.int64) * (taps * channels)
    at = out_ptr + out_row[:, None] + (tap * channels + c)[None, :]
    stored = o_in[:, None] & c_in[None, :]
    tl.store(at, narrow(acc, out_ptr.dtype.element_ty), mask=stored)
    if THREE:
        tl.store(at + channels, narrow(acc_1, out_ptr.dtype.element_ty), mask=stored)
        tl.store(at + 2 * channels, narrow(acc_2, out_ptr.dtype.element_ty), mask=stored)
