"""Depthwise: each output channel reads one input channel, so there is nothing to multiply as matrices."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def depthwise_kernel(
    x_ptr, w_ptr, bias_ptr, y_ptr,
    batch, outputs, multiplier,
    x_d, x_h, x_w, y_d, y_h, y_w, k_d, k_h, k_w,
    stride_d, stride_h, stride_w, pad_d, pad_h, pad_w,
    dil_d, dil_h, dil_w, in_d, in_h, in_w,
    xs_n, xs_d, xs_h, xs_w, xs_c, ys_n, ys_d, ys_h, ys_w, ys_c,
    HAS_BIAS: tl.constexpr, FLIP: tl.constexpr, PHASED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """``outputs`` is all output channels; w is [taps, outputs], contiguous."""
    if WIDE:
        one = (tl.program_id(0) * 0 + 1).to(tl.int64)
        xs_n, xs_d, xs_h, xs_w, xs_c = xs_n * one, xs_d * one, xs_h * one, xs_w * one, xs_c * one
        ys_n, ys_d, ys_h, ys_w, ys_c = ys_n * one, ys_d * one, ys_h * one, ys_w * one, ys_c * one
    pixels = batch * y_d * y_h * y_w
    m = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    o = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    o_w = m % y_w
    rest = m // y_w
    o_h = rest % y_h
    rest = rest // y_h
    o_d = rest % y_d
    image = rest // y_d
    row_in = m < pixels
    column_in = o < outputs
    column = (o // multiplier) * xs_c
    acc = tl.zeros((BLOCK_P, BLOCK_C), tl.float32)
    for t_d in range(k_d):
        for t_h in range(k_h):
            for t_w in range(k_w):
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
                x = tl.load(
                    x_ptr + x_row[:, None] + column[None, :], mask=inside[:, None] & column_in[None, :], other=0.0
                )
                tap = (t_d * k_h + t_h) * k_w + t_w
                if FLIP:
                    tap = k_d * k_h * k_w - 1 - tap
                w = tl.load(w_ptr + tap * outputs + o, mask=column_in, other=0.0)
                acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    if HAS_BIAS:
        acc += tl.load(bias_ptr + o, mask=column_in, other=0.0).to(tl.float32)[None, :]
    y_row = image * ys_n + o_d * ys_d + o_h * ys_h + o_w * ys_w
    y_at = y_ptr + y_row[:, None] + (o * ys_c)[None, :]
    tl.store(y_at, narrow(acc, y_ptr.dtype.element_ty), mask=row_in[:, None] & column_in[None, :])
