"""The Triton kernel."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def weighted_kernel(
    x_ptr, weights_ptr, out_ptr, x_stride, x_row, weights_stride, size, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One block of one sum a program; each product is rounded to the type, and the sum once."""
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    one = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.static_range(ROWS):
        weight = tl.load(weights_ptr + one * weights_stride + row).to(tl.float32)
        x = tl.load(x_ptr + one * x_stride + row * x_row + place, mask=inside, other=0.0).to(tl.float32)
        total += narrow(x * weight, dtype).to(tl.float32)
    tl.store(out_ptr + one * size + place, narrow(total, dtype), mask=inside)
