"""The gradient for x: the same product with the weights the other way round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments


class GatherQmm(torch.autograd.Function):
    """``gather_qmm`` with a gradient for x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, a: Arguments, call: Callable[[Arguments], torch.Tensor]) -> torch.Tensor:
        """Multiply."""
        ctx.arguments, ctx.call = a._replace(x=x.detach()), call
        return call(ctx.arguments)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Multiply the gradient of each pair with its expert's weights, and add up what came from one matrix of x."""
        a: Arguments = ctx.arguments
        m, k = a.x.shape[-2:]
        pairs = a.pairs._replace(shape=(a.pairs.count,), lhs=None, divisor=1)
        back = a._replace(x=grads[0].reshape(-1, m, a.n), pairs=pairs, transpose=not a.transpose)
        of_x = a.pairs.add_up(ctx.call(back).reshape(-1, m, k), a.x.shape[:-2].numel())
        return of_x.reshape(a.x.shape).to(a.x.dtype), None, None
