"""Several products of the same few rows of x in one launch, and a gated one, with the lanes of ``quantized_matmul``.

What a program walks through is the same; which rows of which weights are its own differs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.walked import walked
from rocmend.kernels.language import narrow


@triton.jit
def many_kernel(
    x_ptr, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr, w2_ptr, s2_ptr, b2_ptr, out2_ptr,
    M, N0, N1, N2, words, groups, x_stride, steps,
    MODE: tl.constexpr, GROUP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr, SLICES: tl.constexpr,
    PER: tl.constexpr, BLOCK_M: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Multiply x with COUNT (2 or 3) weights, each as ``lanes_kernel`` does.

    Programs: (tiles of 16 rows of the first weights, then of the second and the third, tiles of M).
    """
    AFFINE: tl.constexpr = MODE == "affine"
    tile = tl.program_id(0)
    second = tl.cdiv(N0, 16)
    third = second + tl.cdiv(N1, 16)
    later = tile >= second
    w_ptr = tl.where(later, w1_ptr, w0_ptr)
    s_ptr = tl.where(later, s1_ptr, s0_ptr)
    b_ptr = b0_ptr
    if AFFINE:
        b_ptr = tl.where(later, b1_ptr, b0_ptr)
    out_ptr = tl.where(later, out1_ptr, out0_ptr)
    N = tl.where(later, N1, N0)
    before = tl.where(later, second, 0)
    if COUNT == 3:
        last = tile >= third
        w_ptr = tl.where(last, w2_ptr, w_ptr)
        s_ptr = tl.where(last, s2_ptr, s_ptr)
        if AFFINE:
            b_ptr = tl.where(last, b2_ptr, b_ptr)
        out_ptr = tl.where(last, out2_ptr, out_ptr)
        N = tl.where(last, N2, N)
        before = tl.where(last, third, before)
    first = (tile - before) * 16
    first_line = tl.program_id(1) * BLOCK_M
    eight = tl.arange(0, 8)[None, :, None, None, None]
    eights = tl.arange(0, 2)[None, None, None, :, None]
    n = tl.minimum(first + eights * 8 + eight, N - 1).to(tl.int64)
    row = tl.minimum(first + tl.arange(0, 16)[None, :], N - 1).to(tl.int64)
    # A name of its own: N0 of 1 is a constant, and what is computed from it is one until it is assigned.
    zero = N0 >> 31
    product = walked(
        x_ptr, w_ptr, s_ptr, b_ptr, n, row, first_line, M, words, groups, x_stride, steps, zero,
        MODE, GROUP, BITS, SLICES, PER, BLOCK_M, AHEAD, EVEN, PDL,
    )  # fmt: skip
    line = first_line + tl.arange(0, BLOCK_M)
    here_n = first + tl.arange(0, 16)
    at = line[None, :].to(tl.int64) * N + here_n[:, None]
    out = narrow(product, out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, out, mask=(line < M)[None, :] & (here_n < N)[:, None])


@triton.jit
def gated_kernel(
    x_ptr, gate_ptr, gate_s_ptr, gate_b_ptr, up_ptr, up_s_ptr, up_b_ptr, out_ptr,
    M, N, words, groups, x_stride, steps,
    MODE: tl.constexpr, GROUP: tl.constexpr, BITS: tl.constexpr, SLICES: tl.constexpr, PER: tl.constexpr,
    BLOCK_M: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Compute silu(x · gateᵀ) · (x · upᵀ), each step rounded as an operation by itself.

    Programs: (tiles of 8 columns, tiles of M): 8 rows of the gate and 8 of up, side by side.
    """
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    AFFINE: tl.constexpr = MODE == "affine"
    first = tl.program_id(0) * 8
    first_line = tl.program_id(1) * BLOCK_M
    eight = tl.arange(0, 8)[None, :, None, None, None]
    of_gate = tl.arange(0, 2)[None, None, None, :, None] == 0
    place = tl.arange(0, 16)[None, :]
    w_ptr = tl.where(of_gate, gate_ptr, up_ptr)
    s_ptr = tl.where(place < 8, gate_s_ptr, up_s_ptr)
    b_ptr = gate_b_ptr
    if AFFINE:
        b_ptr = tl.where(place < 8, gate_b_ptr, up_b_ptr)
    n = tl.minimum(first + eight, N - 1).to(tl.int64)
    row = tl.minimum(first + place % 8, N - 1).to(tl.int64)
    # A name of its own: N of 1 is a constant, and what is computed from it is one until it is assigned.
    zero = N >> 31
    product = walked(
        x_ptr, w_ptr, s_ptr, b_ptr, n, row, first_line, M, words, groups, x_stride, steps, zero,
        MODE, GROUP, BITS, SLICES, PER, BLOCK_M, AHEAD, EVEN, PDL,
    )  # fmt: skip
    gate, up = tl.split(product.reshape(2, 8, BLOCK_M).permute(1, 2, 0))
    gate = narrow(gate, dtype).to(tl.float32)
    up = narrow(up, dtype).to(tl.float32)
    sigmoid = narrow(tl.div_rn(tl.full(gate.shape, 1.0, tl.float32), 1.0 + tl.exp(-gate)), dtype).to(tl.float32)
    silu = narrow(gate * sigmoid, dtype).to(tl.float32)
    line = first_line + tl.arange(0, BLOCK_M)
    here_n = first + tl.arange(0, 8)
    at = line[None, :].to(tl.int64) * N + here_n[:, None]
    tl.store(out_ptr + at, narrow(silu * up, dtype), mask=(line < M)[None, :] & (here_n < N)[:, None])
