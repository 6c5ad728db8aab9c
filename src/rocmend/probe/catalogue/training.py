"""Training steps against the same steps in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("training", tags=("training",))


def training(ctx: Context, optimizer: Callable[[Any], Any], *, clip: bool = False) -> Case:
    """Return a case of five steps of a small network: the losses and the weights after them."""
    network = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).to(ctx.dtype)

    class Steps(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, batch: torch.Tensor, goal: torch.Tensor) -> list[torch.Tensor]:
            updates, losses = optimizer(self.network.parameters()), []
            for _ in range(5):
                updates.zero_grad()
                loss = torch.nn.functional.mse_loss(self.network(batch), goal)
                loss.backward()
                if clip:
                    torch.nn.utils.clip_grad_norm_(self.network.parameters(), 0.1)
                updates.step()
                losses.append(loss.detach())
            return [torch.stack(losses), *(parameter.detach() for parameter in self.network.parameters())]

    return Case(Steps(), (ctx.randn(64, 16), ctx.randn(64, 4)), fresh=True, loosen=2)


@family.probe("train-sgd", "five steps of gradient descent with momentum", ("float32", "bfloat16"), smoke=True)
def sgd(ctx: Context) -> Case:
    return training(ctx, lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9))


@family.probe("train-adamw", "five steps of AdamW", ("float32",))
def adamw(ctx: Context) -> Case:
    return training(ctx, lambda parameters: torch.optim.AdamW(parameters, lr=1e-3, eps=1e-4))


@family.probe("train-adamw-fused", "five steps of AdamW in one kernel", ("float32",), needs=("cuda",))
def adamw_fused(ctx: Context) -> Case:
    def make(parameters: Any) -> Any:
        held = list(parameters)
        return torch.optim.AdamW(held, lr=1e-3, eps=1e-4, fused=held[0].is_cuda)

    return training(ctx, make)


@family.probe("train-clip", "five steps with the gradient's norm held", ("float32",))
def clip(ctx: Context) -> Case:
    return training(ctx, lambda parameters: torch.optim.SGD(parameters, lr=0.1), clip=True)


@family.probe("checkpoint", "gradients of layers computed twice to save memory", ("float32",))
def checkpoint(ctx: Context) -> Case:
    from torch.utils.checkpoint import checkpoint as recomputed

    inner = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))

    class Checkpointed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> Any:
            return recomputed(self.inner, x, use_reentrant=False)

    return Case(Checkpointed(), (ctx.randn(9, 32),), backward=True)
