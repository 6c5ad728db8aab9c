"""A few rows of x of a half type against weights of any format, on the matrix unit, in one launch."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.walked import walked
from rocmend.kernels.language import narrow


@triton.jit
def lanes_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    words,
    groups,
    x_stride,
    x_batch,
    w_batch,
    steps,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    SLICES: tl.constexpr,
    PER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    AHEAD: tl.constexpr,
    EVEN: tl.constexpr,
    PDL: tl.constexpr,
):
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x; constants as for ``walked``.

    Programs: (tiles of 16 rows, batch · tiles of M), each of ``steps`` steps.
    """
    tiles_m = tl.cdiv(M, BLOCK_M)
    batch = (tl.program_id(1) // tiles_m).to(tl.int64)
    first_line = (tl.program_id(1) % tiles_m) * BLOCK_M
    first = tl.program_id(0) * 16
    eight = tl.arange(0, 8)[None, :, None, None, None]
    eights = tl.arange(0, 2)[None, None, None, :, None]
    n = tl.minimum(first + eights * 8 + eight, N - 1).to(tl.int64) + batch * w_batch
    row = tl.minimum(first + tl.arange(0, 16)[None, :], N - 1).to(tl.int64) + batch * w_batch
    # A name of its own: N of 1 is a constant, and what is computed from it is one until it is assigned.
    zero = N >> 31
    product = walked(
        x_ptr + batch * x_batch, w_ptr, scales_ptr, biases_ptr, n, row, first_line, M, words, groups, x_stride, steps,
        zero, MODE, GROUP, BITS, SLICES, PER, BLOCK_M, AHEAD, EVEN, PDL,
    )  # fmt: skip
    out = narrow(product, out_ptr.dtype.element_ty)
    line = first_line + tl.arange(0, BLOCK_M)
    here_n = first + tl.arange(0, 16)
    at = line[None, :].to(tl.int64) * N + here_n[:, None]
    tl.store(out_ptr + batch * M * N + at, out, mask=(line < M)[None, :] & (here_n < N)[:, None])
