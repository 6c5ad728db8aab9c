"""The Triton kernel: eight codes a lane, one program for a block of them. Every rounding is that of the reference."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.chunks import codes8, window8
from rocmend.kernels.common.packing import e2m1, e4m3
from rocmend.kernels.language import narrow


@triton.jit
def _power(byte, dtype: tl.constexpr):
    """Return ``2 ** (byte - 127)`` in fp32 as ``dtype`` holds it: infinity for 255, 2^-127 for 0."""
    bits = tl.where(byte == 0, 0x400000, byte << 23)
    return narrow(bits.to(tl.float32, bitcast=True), dtype).to(tl.float32)


@triton.jit
def chunks_kernel(
    words_ptr, scales_ptr, biases_ptr, global_ptr, out_ptr, chunks,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, HAS_GLOBAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Values of every format; what affine multiplies is rounded to the type of the scales."""
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    chunk = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = chunk < chunks
    place = tl.arange(0, 8)
    codes = codes8(window8(words_ptr, chunk, inside, BITS)[:, None], place[None, :], BITS)
    raw = tl.load(scales_ptr + chunk // (GROUP // 8), mask=inside, other=0)
    if MODE == "affine":
        kept: tl.constexpr = scales_ptr.dtype.element_ty
        bias = tl.load(biases_ptr + chunk // (GROUP // 8), mask=inside, other=0).to(tl.float32)
        value = narrow(codes.to(tl.float32) * raw.to(tl.float32)[:, None], kept).to(tl.float32)
        value = narrow(value + bias[:, None], kept).to(tl.float32)
    else:
        if MODE == "nvfp4":
            scale = e4m3(raw.to(tl.int32)).to(tl.float32)
            if HAS_GLOBAL:
                whole = tl.load(global_ptr)
                scale = scale * tl.div_rn(whole, 2688.0 + 0.0 * whole)
        else:
            scale = _power(raw.to(tl.int32), dtype)
        if BITS == 4:
            value = e2m1(codes).to(tl.float32) * scale[:, None]
        else:
            value = e4m3(codes).to(tl.float32) * scale[:, None]
    out = out_ptr + chunk[:, None] * 8 + place[None, :]
    tl.store(out, narrow(value, dtype), mask=inside[:, None])
