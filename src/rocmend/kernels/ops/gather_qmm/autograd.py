"""The gradient for x: the same product with the weights the other way round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels.common.routing import Pairs
from rocmend.kernels.ops.gather_qmm.arguments import Arguments


class GatherQmm(torch.autograd.Function):
    """``gather_qmm`` with a gradient for x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, a: Arguments, call: Callable[[Arguments], torch.Tensor]) -> torch.Tensor:
        """Multiply."""
        ctx.arguments, ctx.call = a._replace(x=x.detach()), call
        return call(ctx.arguments)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Multiply the gradient of each pair with its expert's weights, and add up what came from one matrix of x."""
        a: Arguments = ctx.arguments
        m, k = a.x.shape[-2:]
        matrices = a.x.shape[:-2].numel()
        grad = grads[0].reshape(-1, m, a.n)
        pairs = Pairs((a.pairs.count,), None, 1, a.pairs.rhs)
        back = a._replace(x=grad, pairs=pairs, transpose=not a.transpose)
        of_pairs = ctx.call(back)
        if a.pairs.lhs is None and matrices * a.pairs.divisor == a.pairs.count:
            of_x = of_pairs.reshape(matrices, a.pairs.divisor, m, k).float().sum(1)
        else:
            lhs = a.pairs.lhs
            if lhs is None:
                lhs = torch.arange(a.pairs.count, device=grad.device) // a.pairs.divisor
            of_x = torch.zeros((matrices, m, k), dtype=torch.float32, device=grad.device)
            of_x.index_add_(0, lhs.long(), of_pairs.float())
        return of_x.reshape(a.x.shape).to(a.x.dtype), None, None
