"""Activations, softmax and losses."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("activations")


@family.probe("relu", "ReLU and its leaky and capped relatives")
def relu(ctx: Context) -> Case:
    functions = torch.nn.functional
    return Case(
        lambda x: [functions.relu(x), functions.leaky_relu(x, 0.25), functions.relu6(x * 4)], (ctx.randn(10_007),)
    )


@family.probe("gelu", "GELU, exact and by tanh, with gradients")
def gelu(ctx: Context) -> Case:
    functions = torch.nn.functional
    return Case(
        lambda x: functions.gelu(x) + functions.gelu(x, approximate="tanh"), (ctx.randn(5, 1001),), backward=True
    )


@family.probe("silu", "SiLU, sigmoid, softplus, with gradients")
def silu(ctx: Context) -> Case:
    functions = torch.nn.functional
    return Case(
        lambda x: functions.silu(x) + torch.sigmoid(x) + functions.softplus(x), (ctx.randn(5, 1001),), backward=True
    )


@family.probe("softmax", "softmax along rows", smoke=True)
def softmax(ctx: Context) -> Case:
    return Case(lambda x: torch.softmax(x, -1), (ctx.randn(33, 1025, scale=3),))


@family.probe("softmax-masked", "softmax of rows that are partly minus infinity", ("float32", "float16"))
def softmax_masked(ctx: Context) -> Case:
    x = ctx.randn(32, 127)
    x[torch.ones(32, 127).tril().bool().logical_not()] = float("-inf")
    return Case(lambda x: torch.softmax(x, -1), (x,))


@family.probe("softmax-wide", "softmax over a vocabulary of 128 thousand", ("float32", "bfloat16"))
def softmax_wide(ctx: Context) -> Case:
    return Case(lambda x: torch.log_softmax(x, -1), (ctx.randn(3, 128_259, scale=3),))


@family.probe("softmax-backward", "gradients of softmax and log-softmax", ("float32", "float16"))
def softmax_backward(ctx: Context) -> Case:
    return Case(lambda x: torch.softmax(x, -1) + torch.log_softmax(x, -1), (ctx.randn(17, 257),), backward=True)


@family.probe("cross-entropy", "cross-entropy loss, with gradients", ("float32", "bfloat16"), tags=("training",))
def cross_entropy(ctx: Context) -> Case:
    labels = ctx.integers(0, 101, 33)
    return Case(
        lambda x, y: torch.nn.functional.cross_entropy(x, y, label_smoothing=0.1),
        (ctx.randn(33, 101), labels),
        backward=True,
    )


@family.probe("losses", "squared, absolute, smooth and binary losses", ("float32",))
def losses(ctx: Context) -> Case:
    functions = torch.nn.functional
    return Case(
        lambda x, y: [
            functions.mse_loss(x, y),
            functions.l1_loss(x, y),
            functions.smooth_l1_loss(x, y),
            functions.binary_cross_entropy_with_logits(x, y.sigmoid()),
        ],
        (ctx.randn(1000), ctx.randn(1000)),
    )
