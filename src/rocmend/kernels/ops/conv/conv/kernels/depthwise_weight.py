"""Weight gradient of a depthwise convolution: one number for each tap and channel, summed over output pixels."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow
from rocmend.kernels.ops.conv.conv.kernels.geometry import divided


@triton.jit
def depthwise_weight_kernel(
    x_ptr, dy_ptr, out_ptr,
    outputs, multiplier, pixels, per_split,
    x_d, x_h, x_w, y_d, y_h, y_w, d_factor, d_shift, h_factor, h_shift, w_factor, w_shift,
    k_d, k_h, k_w, stride_d, stride_h, stride_w, pad_d, pad_h, pad_w, dil_d, dil_h, dil_w, in_d, in_h, in_w,
    xs_n, xs_d, xs_h, xs_w, xs_c, ys_n, ys_d, ys_h, ys_w, ys_c,
    FLIP: tl.constexpr, PHASED: tl.constexpr, WIDE: tl.constexpr, TAPS: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Out is [splits, outputs, taps]; each split sums ``per_split`` pixels.

    A program takes up to TAPS taps along a row: they share what is loaded of the gradient, and read x where their
    neighbours did.
    """
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, xs_c = xs_n * one, xs_d * one, xs_h * one, xs_w * one, xs_c * one
        ys_n, ys_d, ys_h, ys_w, ys_c = ys_n * one, ys_d * one, ys_h * one, ys_w * one, ys_c * one
    o = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    o_in = o < outputs
    split = tl.program_id(2)
    blocks = tl.cdiv(k_w, TAPS)
    row = tl.program_id(1) // blocks
    place = (tl.program_id(1) % blocks) * TAPS + tl.arange(0, TAPS)
    taken = place < k_w
    t_d, t_h, t_w = row // k_h, row % k_h, place
    if FLIP:
        t_d, t_h, t_w = k_d - 1 - t_d, k_h - 1 - t_h, k_w - 1 - place
    x_column = (o // multiplier) * xs_c
    y_column = o * ys_c
    end = tl.minimum(pixels, (split + 1) * per_split)
    acc = tl.zeros((BLOCK_P, TAPS, BLOCK_C), tl.float32)
    for start in range(split * per_split, end, BLOCK_P):
        m = start + tl.arange(0, BLOCK_P)
        rest_h = divided(m, w_factor, w_shift)
        rest_d = divided(rest_h, h_factor, h_shift)
        image = divided(rest_d, d_factor, d_shift)
        o_w, o_h, o_d = m - rest_h * y_w, rest_h - rest_d * y_h, rest_d - image * y_d
        p_d = o_d * stride_d - pad_d + t_d * dil_d
        p_h = o_h * stride_h - pad_h + t_h * dil_h
        p_w = (o_w * stride_w - pad_w)[:, None] + (t_w * dil_w)[None, :]
        if PHASED:
            p_d = tl.where(p_d % in_d == 0, p_d // in_d, -1)
            p_h = tl.where(p_h % in_h == 0, p_h // in_h, -1)
            p_w = tl.where(p_w % in_w == 0, p_w // in_w, -1)
        # A mask is a scalar register or two for each element that is not loaded with others: one comparison makes it.
        row_in = (m < end) & (p_d.to(tl.uint32) < x_d) & (p_h.to(tl.uint32) < x_h)
        p_w = tl.where(taken[None, :], tl.where(row_in[:, None], p_w, -1), -1)
        inside = p_w.to(tl.uint32) < x_w
        x_at = (image * xs_n + p_d * xs_d + p_h * xs_h)[:, None] + p_w * xs_w
        y_at = image * ys_n + o_d * ys_d + o_h * ys_h + o_w * ys_w
        both = inside[:, :, None] & o_in[None, None, :]
        x = tl.load(x_ptr + x_at[:, :, None] + x_column[None, None, :], mask=both, other=0.0)
        y_at = dy_ptr + y_at[:, None] + y_column[None, :]
        dy = tl.load(y_at, mask=row_in[:, None] & o_in[None, :], other=0.0)
        acc += x.to(tl.float32) * dy.to(tl.float32)[:, None, :]
    at = (split * outputs + o).to(tl.int64)[None, :] * (k_d * k_h * k_w) + (row * k_w + place)[:, None]
    result = narrow(tl.sum(acc, axis=0), out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, result, mask=taken[:, None] & o_in[None, :])
