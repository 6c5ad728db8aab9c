"""The Triton kernels: a tile of times and channels a program, each tap one load.

The window of time t is ``x_full[t : t + K]`` where ``x_full`` is the state (K - 1 times) before x.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def window_at(x_ptr, state_ptr, b, place, c, inside, T, K: tl.constexpr, x_sb, x_st, x_sc, s_sb, s_st, s_sc, HAS_STATE):
    """Return ``x_full`` at places (0 is the state's first time) in fp32; 0 outside."""
    t = (place - (K - 1)).to(tl.int64)
    pointer = x_ptr + b * x_sb + t[:, None] * x_st + c[None, :] * x_sc
    x = tl.load(pointer, mask=inside & (t[:, None] >= 0) & (t[:, None] < T), other=0.0).to(tl.float32)
    if HAS_STATE:
        before = inside & (t[:, None] < 0)
        pointer = state_ptr + b * s_sb + place[:, None] * s_st + c[None, :] * s_sc
        x += tl.load(pointer, mask=before, other=0.0).to(tl.float32)
    return x


@triton.jit
def forward_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    state_ptr,
    grad_ptr,
    out_ptr,
    new_state_ptr,
    T,
    C,
    t_blocks,
    x_sb,
    x_st,
    x_sc,
    s_sb,
    s_st,
    s_sc,
    g_sb,
    g_st,
    g_sc,
    K: tl.constexpr,
    SILU: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    HAS_STATE: tl.constexpr,
    BACKWARD: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """The convolution and the new state; with BACKWARD, the gradient before the activation instead."""
    b = (tl.program_id(0) // t_blocks).to(tl.int64)
    t = (tl.program_id(0) % t_blocks) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (t[:, None] < T) & (c[None, :] < C)
    acc = tl.zeros((BLOCK_T, BLOCK_C), tl.float32)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + c, mask=c < C, other=0.0).to(tl.float32)[None, :]
    for k in tl.static_range(K):
        w = tl.load(weight_ptr + c * K + k, mask=c < C, other=0.0).to(tl.float32)
        acc += w[None, :] * window_at(
            x_ptr, state_ptr, b, t + k, c, inside, T, K, x_sb, x_st, x_sc, s_sb, s_st, s_sc, HAS_STATE
        )
    wide = t[:, None].to(tl.int64)
    place = (b * T + wide) * C + c[None, :]
    if BACKWARD:
        gate = 1.0 / (1.0 + tl.exp(-acc))
        slope = gate * (1.0 + acc * (1.0 - gate))
        grad = tl.load(grad_ptr + b * g_sb + wide * g_st + c[None, :] * g_sc, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + place, grad * slope, mask=inside)
    else:
        if SILU:
            acc = acc / (1.0 + tl.exp(-acc))
        tl.store(out_ptr + place, narrow(acc, out_ptr.dtype.element_ty), mask=inside)
        if K > 1:
            if tl.program_id(0) % t_blocks == 0:
                for k in tl.static_range(K - 1):
                    last = T + k + tl.zeros((1,), tl.int32)
                    value = window_at(
                        x_ptr, state_ptr, b, last, c, (last[:, None] >= 0) & (c[None, :] < C), T, K,
                        x_sb, x_st, x_sc, s_sb, s_st, s_sc, HAS_STATE,
                    )  # fmt: skip
                    pointer = new_state_ptr + (b * (K - 1) + k) * C + c[None, :]
                    tl.store(pointer, narrow(value, new_state_ptr.dtype.element_ty), mask=c[None, :] < C)


@triton.jit
def input_gradient_kernel(
    grad_ptr,
    weight_ptr,
    state_grad_ptr,
    dx_ptr,
    dstate_ptr,
    T,
    C,
    t_blocks,
    g_sb,
    g_st,
    g_sc,
    K: tl.constexpr,
    HAS_STATE_GRAD: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Gradients of x and of the state: of ``x_full``, over its K - 1 + T places."""
    b = (tl.program_id(0) // t_blocks).to(tl.int64)
    place = (tl.program_id(0) % t_blocks) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (place[:, None] < T + K - 1) & (c[None, :] < C)
    acc = tl.zeros((BLOCK_T, BLOCK_C), tl.float32)
    for k in tl.static_range(K):
        w = tl.load(weight_ptr + c * K + k, mask=c < C, other=0.0).to(tl.float32)
        t = (place - k)[:, None].to(tl.int64)
        pointer = grad_ptr + b * g_sb + t * g_st + c[None, :] * g_sc
        acc += w[None, :] * tl.load(pointer, mask=inside & (t >= 0) & (t < T), other=0.0).to(tl.float32)
    if HAS_STATE_GRAD:
        back = (place - T)[:, None]
        pointer = state_grad_ptr + (b * (K - 1) + back) * C + c[None, :]
        acc += tl.load(pointer, mask=inside & (back >= 0), other=0.0).to(tl.float32)
    t = (place - (K - 1))[:, None].to(tl.int64)
    tl.store(dx_ptr + (b * T + t) * C + c[None, :], narrow(acc, dx_ptr.dtype.element_ty), mask=inside & (t >= 0))
    if K > 1:
        pointer = dstate_ptr + (b * (K - 1) + place[:, None]) * C + c[None, :]
        tl.store(pointer, narrow(acc, dstate_ptr.dtype.element_ty), mask=inside & (t < 0))


@triton.jit
def weight_gradient_kernel(
    x_ptr,
    state_ptr,
    grad_ptr,
    partial_ptr,
    T,
    C,
    t_blocks,
    x_sb,
    x_st,
    x_sc,
    s_sb,
    s_st,
    s_sc,
    g_sb,
    g_st,
    g_sc,
    K: tl.constexpr,
    HAS_STATE: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """A tile's part of the gradients of the weight (rows 0 to K - 1) and of the bias (row K)."""
    b = (tl.program_id(0) // t_blocks).to(tl.int64)
    t = (tl.program_id(0) % t_blocks) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = (t[:, None] < T) & (c[None, :] < C)
    wide = t[:, None].to(tl.int64)
    grad = tl.load(grad_ptr + b * g_sb + wide * g_st + c[None, :] * g_sc, mask=inside, other=0.0).to(tl.float32)
    row = partial_ptr + tl.program_id(0).to(tl.int64) * (K + 1) * C + c
    for k in tl.static_range(K):
        x = window_at(x_ptr, state_ptr, b, t + k, c, inside, T, K, x_sb, x_st, x_sc, s_sb, s_st, s_sc, HAS_STATE)
        tl.store(row + k * C, tl.sum(x * grad, axis=0), mask=c < C)
    tl.store(row + K * C, tl.sum(grad, axis=0), mask=c < C)
