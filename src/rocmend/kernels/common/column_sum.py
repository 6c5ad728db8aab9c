"""The second stage of sums over rows: partial sums of programs added in a fixed order."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def column_sum_kernel(partial_ptr, out_ptr, count, n, COUNT: tl.constexpr, COLUMNS: tl.constexpr):
    """out[c] = sum over p of partial[p, c]."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    total = tl.zeros((COUNT, COLUMNS), tl.float32)
    for start in range(0, count, COUNT):
        part = start + tl.arange(0, COUNT)[:, None]
        total += tl.load(partial_ptr + part * n + column, mask=(part < count) & (column < n), other=0.0)
    result = tl.sum(total, axis=0)[None, :]
    tl.store(out_ptr + column, narrow(result, out_ptr.dtype.element_ty), mask=column < n)
