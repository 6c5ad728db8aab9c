"""torch.compile in its modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family(
    "compile", tags=("torch.compile", "inductor", "triton"), allowance="jit", slow="torch-compile", alone=True
)


def block(ctx: Context) -> torch.nn.Module:
    """Return a feed-forward block with a norm: products, reductions and element-wise work to fuse."""
    made: torch.nn.Module = torch.nn.Sequential(
        torch.nn.LayerNorm(64), torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64)
    )
    return made.to(ctx.dtype)


def compiling(**settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the function that compiles an operation with these settings."""

    def compile_it(call: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = torch.compile(call, **settings)
        return compiled

    return compile_it


@family.probe("compile-default", "a block compiled", ("float32", "float16", "bfloat16"), needs=("compile",))
def compile_default(ctx: Context) -> Case:
    return Case(block(ctx), (ctx.randn(4, 17, 64),), compile=compiling())


@family.probe(
    "compile-reduce-overhead",
    "a block compiled with graphs",
    ("float32",),
    needs=("compile",),
    tags=("cudagraphs", "hipgraph"),
)
def compile_reduce_overhead(ctx: Context) -> Case:
    return Case(block(ctx), (ctx.randn(4, 17, 64),), compile=compiling(mode="reduce-overhead"))


@family.probe(
    "compile-max-autotune",
    "a block compiled with tuning",
    ("float32", "float16"),
    needs=("compile", "cuda"),
    tags=("autotune",),
)
def compile_max_autotune(ctx: Context) -> Case:
    return Case(block(ctx), (ctx.randn(4, 17, 64),), compile=compiling(mode="max-autotune"))


@family.probe(
    "compile-dynamic", "element-wise work and a reduction, compiled for any size", ("float32",), needs=("compile",)
)
def compile_dynamic(ctx: Context) -> Case:
    return Case(lambda x: torch.softmax(x * 2 + 1, -1).sum(0), (ctx.randn(33, 65),), compile=compiling(dynamic=True))


@family.probe(
    "compile-backward", "gradients of a compiled block", ("float32", "bfloat16"), needs=("compile",), tags=("training",)
)
def compile_backward(ctx: Context) -> Case:
    return Case(block(ctx), (ctx.randn(4, 17, 64),), compile=compiling(), backward=True)
