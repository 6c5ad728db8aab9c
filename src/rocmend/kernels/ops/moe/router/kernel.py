"""The Triton kernel."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def router_kernel(
    x_ptr, scores_ptr, places_ptr, x_stride, experts, K: tl.constexpr, NORM: tl.constexpr, BLOCK: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """One row a program: softmax as ``softmax`` rounds it, then one largest value after another."""
    dtype: tl.constexpr = scores_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, BLOCK)
    inside = place < experts
    x = tl.load(x_ptr + row * x_stride + place, mask=inside, other=float("-inf")).to(tl.float32)
    below = x - tl.max(x, axis=0)
    power = tl.where(inside, tl.exp(below), 0.0)
    value = narrow(power * (1.0 / tl.sum(power, axis=0)), dtype).to(tl.float32)
    # NaN is the largest, whatever its bits; the others are not negative and stand in the order of their bits. Of equal
    # ones the last comes first, as from the end of a stable sort.
    bits = tl.where(value != value, 0x7FC00000, value.to(tl.int32, bitcast=True))
    keys = tl.where(inside, (bits.to(tl.int64) << 32) | place, -1)
    slot = tl.arange(0, SLOTS)
    chosen = tl.zeros((SLOTS,), tl.int64)
    for k in tl.static_range(K):
        best = tl.max(keys, axis=0)
        chosen = tl.where(slot == K - 1 - k, best, chosen)
        keys = tl.where(keys == best, -1, keys)
    scores = (chosen >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    if NORM:
        total = narrow(tl.sum(tl.where(slot < K, scores, 0.0), axis=0), dtype).to(tl.float32)
        scores = tl.div_rn(scores, tl.zeros((SLOTS,), tl.float32) + total)
    tl.store(scores_ptr + row * K + slot, narrow(scores, dtype), mask=slot < K)
    tl.store(places_ptr + row * K + slot, chosen.to(tl.int32), mask=slot < K)
