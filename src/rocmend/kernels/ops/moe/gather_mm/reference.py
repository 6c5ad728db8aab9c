"""The reference."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import computed_in
from rocmend.kernels.ops.moe.gather_mm.function import Arguments, arguments


def gather_mm(
    a: Tensor, b: Tensor, lhs_indices: Tensor | None = None, rhs_indices: Tensor | None = None, *,
    sorted_indices: bool = False,
) -> Tensor:  # fmt: skip
    """Multiply expert by expert, in float64 where the operands are."""
    found = arguments(a, b, lhs_indices, rhs_indices, ordered=sorted_indices)
    out = run(found)
    return out.reshape(*found.pairs.shape, *out.shape[1:])


def run(given: Arguments) -> Tensor:
    """Multiply; the half types in fp32."""
    dtype = given.a.dtype
    wide = computed_in(dtype)
    lhs = given.pairs.lhs
    if lhs is None:
        lhs = torch.arange(given.pairs.count, device=given.a.device) // given.pairs.divisor
    shape = (given.pairs.count, given.a.shape[1], given.b.shape[2])
    out = torch.empty(shape, dtype=dtype, device=given.a.device)
    for expert in range(given.b.shape[0]):
        mine = (given.pairs.rhs == expert).nonzero()[:, 0]
        if len(mine):
            out[mine] = (given.a[lhs[mine].long()].to(wide) @ given.b[expert].to(wide)).to(dtype)
    return out
