"""Automatic mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("autocast", tags=("training",), allowance="library", slow="miopen-find")

DTYPES = ("bfloat16", "float16")


def mixed(ctx: Context, module: torch.nn.Module, *shape: int, backward: bool = False) -> Case:
    """Return a float32 module run under autocast to the probe's dtype."""

    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x: torch.Tensor) -> Any:
            # the float64 reference must not be narrowed
            enabled = x.dtype == torch.float32
            with torch.autocast(x.device.type, dtype=ctx.dtype, enabled=enabled):
                return self.inner(x).to(x.dtype)

    plain = Context(ctx.device, torch.float32, ctx.generator)
    return Case(Mixed(), (plain.randn(*shape),), backward=backward, loosen=2)


@family.probe("autocast-linear", "linear layers under autocast, with gradients", DTYPES)
def autocast_linear(ctx: Context) -> Case:
    module = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Tanh(), torch.nn.Linear(96, 33))
    return mixed(ctx, module, 17, 64, backward=True)


@family.probe("autocast-conv", "a convolution under autocast", DTYPES, tags=("miopen", "conv2d"))
def autocast_conv(ctx: Context) -> Case:
    return mixed(ctx, torch.nn.Conv2d(6, 12, 3, padding=1), 2, 6, 17, 17)


@family.probe("autocast-scaler", "a training step under autocast with scaled gradients", ("float16",), needs=("cuda",))
def autocast_scaler(ctx: Context) -> Case:
    plain = Context(ctx.device, torch.float32, ctx.generator)
    batch, goal, start = plain.randn(32, 16), plain.randn(32, 4), plain.randn(4, 16, scale=0.2)

    def train(autocast: bool) -> Callable[..., list[torch.Tensor]]:
        def steps(batch: torch.Tensor, goal: torch.Tensor, start: torch.Tensor) -> list[torch.Tensor]:
            weight = start.clone().requires_grad_()
            optimizer = torch.optim.SGD([weight], lr=0.1)
            scaler = torch.amp.GradScaler(batch.device.type, enabled=autocast, init_scale=256)
            for _ in range(3):
                optimizer.zero_grad()
                with torch.enable_grad(), torch.autocast(batch.device.type, dtype=ctx.dtype, enabled=autocast):
                    loss = (torch.nn.functional.linear(batch, weight).to(goal.dtype) - goal).square().mean()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            return [weight, loss]

        return steps

    return Case(train(autocast=True), (batch, goal, start), reference=train(autocast=False), fresh=True)
