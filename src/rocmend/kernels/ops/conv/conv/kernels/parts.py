"""Sums that were split, put together: parts added in a fixed order, the bias, one rounding."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def parts_kernel(
    part_ptr, bias_ptr, out_ptr, count, n, outputs,
    HAS_BIAS: tl.constexpr, COUNT: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """out[i] = bias[i mod outputs] + the sum over p of part[p, i], for i < n."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COUNT, COLUMNS), tl.float32)
    for start in range(0, count, COUNT):
        part = start + tl.arange(0, COUNT)
        at = part_ptr + part.to(tl.int64)[:, None] * n + column[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & (column < n)[None, :], other=0.0)
    result = tl.sum(total, axis=0)
    if HAS_BIAS:
        result += tl.load(bias_ptr + column % outputs, mask=column < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + column, narrow(result, out_ptr.dtype.element_ty), mask=column < n)
