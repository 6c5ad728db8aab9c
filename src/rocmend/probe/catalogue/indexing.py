"""Gathering, scattering, and putting tensors together."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("indexing")


@family.probe("gather", "elements by index along an axis", ("float32", "float16"))
def gather(ctx: Context) -> Case:
    return Case(lambda x, at: x.gather(1, at), (ctx.randn(33, 65), ctx.integers(0, 65, 33, 40)), exact=True)


@family.probe("scatter", "elements written to an index along an axis", ("float32", "float16"))
def scatter(ctx: Context) -> Case:
    at = torch.stack([ctx.permutation(65)[:40] for _ in range(33)])
    return Case(lambda x, at, y: x.scatter(1, at, y), (ctx.randn(33, 65), at, ctx.randn(33, 40)), exact=True)


@family.probe("scatter-add", "elements added where their indices meet", ("float32", "float16"), tags=("atomics",))
def scatter_add(ctx: Context) -> Case:
    return Case(
        lambda x, at, y: x.scatter_add(0, at, y), (ctx.randn(17, 33), ctx.integers(0, 17, 200, 33), ctx.randn(200, 33))
    )


@family.probe("index-add", "rows added where their indices meet", ("float32", "int32"), tags=("atomics",))
def index_add(ctx: Context) -> Case:
    if not ctx.dtype.is_floating_point:
        base, rows = ctx.integers(0, 9, 17, 33, dtype=ctx.dtype), ctx.integers(0, 9, 300, 33, dtype=ctx.dtype)
    else:
        base, rows = ctx.randn(17, 33), ctx.randn(300, 33)
    return Case(lambda x, at, y: x.index_add(0, at, y), (base, ctx.integers(0, 17, 300), rows))


@family.probe("index-select", "rows by index and by several indices at once", ("float32", "bfloat16"))
def index_select(ctx: Context) -> Case:
    return Case(
        lambda x, i, j: [x.index_select(0, i), x[i, j], x[:, j]],
        (ctx.randn(65, 33), ctx.integers(0, 65, 50), ctx.integers(0, 33, 50)),
        exact=True,
    )


@family.probe("index-put", "elements written, and added, by several indices at once", ("float32",), tags=("atomics",))
def index_put(ctx: Context) -> Case:
    def put(x: torch.Tensor, i: torch.Tensor, j: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.index_put((i, j), y, accumulate=True)

    return Case(put, (ctx.randn(17, 19), ctx.integers(0, 17, 500), ctx.integers(0, 19, 500), ctx.randn(500)))


@family.probe("masked-select", "elements where a mask holds, and their places", ("float32", "float16"))
def masked_select(ctx: Context) -> Case:
    def choose(x: torch.Tensor) -> list[torch.Tensor]:
        return [x[x > 0], (x > 1).nonzero(), x.masked_fill(x < 0, 0.0)]

    return Case(choose, (ctx.randn(65, 127),), exact=True)


@family.probe("cat-stack", "tensors joined, stacked, split, rolled and flipped", ("float32", "float16", "int64"))
def cat_stack(ctx: Context) -> Case:
    def join(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [torch.cat([x, y, x], 1), torch.stack([x, y], 1), x.roll((3, -2), (0, 1)), y.flip(1), *x.split(4)]

    return Case(join, (ctx.distinct(9, 17), ctx.distinct(9, 17)), exact=True)


@family.probe("gather-backward", "gradients of gathered rows", ("float32",), tags=("atomics", "training"))
def gather_backward(ctx: Context) -> Case:
    return Case(lambda x, at: x[at] * 2, (ctx.randn(17, 33), ctx.integers(0, 17, 200)), backward=True)
