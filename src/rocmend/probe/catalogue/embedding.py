"""Embedding tables."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("embedding")


@family.probe("embedding", "rows of a table by index")
def embedding(ctx: Context) -> Case:
    return Case(torch.nn.Embedding(1009, 65).to(ctx.dtype), (ctx.integers(0, 1009, 4, 129),), exact=True)


@family.probe("embedding-backward", "gradients of a table whose rows are used often", ("float32",), tags=("training",))
def embedding_backward(ctx: Context) -> Case:
    return Case(torch.nn.Embedding(31, 64), (ctx.integers(0, 31, 8, 65),), backward=True)


@family.probe("embedding-bag", "means of rows of a table", ("float32",))
def embedding_bag(ctx: Context) -> Case:
    return Case(torch.nn.EmbeddingBag(101, 32, mode="mean"), (ctx.integers(0, 101, 16, 9),))


@family.probe("one-hot", "truth columns of indices", ("int64",))
def one_hot(ctx: Context) -> Case:
    return Case(lambda x: torch.nn.functional.one_hot(x, 37), (ctx.integers(0, 37, 5, 21),))
