"""Weight gradient of a depthwise convolution: one number for each tap and channel, summed over output pixels."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def depthwise_weight_kernel(
    x_ptr, dy_ptr, out_ptr,
    batch, outputs, multiplier, per_split,
    x_d, x_h, x_w, y_d, y_h, y_w, k_d, k_h, k_w,
    stride_d, stride_h, stride_w, pad_d, pad_h, pad_w,
    dil_d, dil_h, dil_w, in_d, in_h, in_w,
    xs_n, xs_d, xs_h, xs_w, xs_c, ys_n, ys_d, ys_h, ys_w, ys_c,
    FLIP: tl.constexpr, PHASED: tl.constexpr, WIDE: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Out is [splits, outputs, taps]; each split sums ``per_split`` pixels."""
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, xs_c = xs_n * one, xs_d * one, xs_h * one, xs_w * one, xs_c * one
        ys_n, ys_d, ys_h, ys_w, ys_c = ys_n * one, ys_d * one, ys_h * one, ys_w * one, ys_c * one
    o = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    tap = tl.program_id(1)
    split = tl.program_id(2)
    o_in = o < outputs
    place = tap
    if FLIP:
        tap = k_d * k_h * k_w - 1 - tap
    t_w = tap % k_w
    t_h = (tap // k_w) % k_h
    t_d = tap // (k_w * k_h)
    x_column = (o // multiplier) * xs_c
    y_column = o * ys_c
    pixels = batch * y_d * y_h * y_w
    end = tl.minimum(pixels, (split + 1) * per_split)
    acc = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for start in range(split * per_split, end, BLOCK_P):
        m = start + tl.arange(0, BLOCK_P)
        row_in = m < end
        o_w = m % y_w
        rest = m // y_w
        o_h = rest % y_h
        rest = rest // y_h
        o_d = rest % y_d
        image = rest // y_d
        p_d = o_d * stride_d - pad_d + t_d * dil_d
        p_h = o_h * stride_h - pad_h + t_h * dil_h
        p_w = o_w * stride_w - pad_w + t_w * dil_w
        inside = row_in
        if PHASED:
            inside &= (p_d % in_d == 0) & (p_h % in_h == 0) & (p_w % in_w == 0)
            p_d = p_d // in_d
            p_h = p_h // in_h
            p_w = p_w // in_w
        inside &= (p_d >= 0) & (p_d < x_d) & (p_h >= 0) & (p_h < x_h) & (p_w >= 0) & (p_w < x_w)
        x_row = image * xs_n + p_d * xs_d + p_h * xs_h + p_w * xs_w
        y_row = image * ys_n + o_d * ys_d + o_h * ys_h + o_w * ys_w
        both = inside[:, None] & o_in[None, :]
        x = tl.load(x_ptr + x_row[:, None] + x_column[None, :], mask=both, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + y_row[:, None] + y_column[None, :], mask=both, other=0.0).to(tl.float32)
        acc += x * dy
    row = (split * outputs + o).to(tl.int64) * tl.num_programs(1)
    tl.store(out_ptr + row + place, narrow(tl.sum(acc, axis=0), out_ptr.dtype.element_ty), mask=o_in)
