"""Sums, extremes, and running sums."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("reductions")


@family.probe("sum", "sum of all, of rows and of columns", smoke=True)
def sum_(ctx: Context) -> Case:
    return Case(lambda x: [x.sum(), x.sum(0), x.sum(1), x.mean((0, 1))], (ctx.uniform(0.5, 1.5, 131, 257),))


@family.probe("sum-large", "sum of four million elements", ("float32",))
def sum_large(ctx: Context) -> Case:
    return Case(torch.sum, (ctx.uniform(0, 1, 1 << 22),))


@family.probe("sum-integers", "sums of whole numbers are exact", ("int32", "int64"))
def sum_integers(ctx: Context) -> Case:
    return Case(lambda x: [x.sum(), x.sum(1), x.amax(0)], (ctx.integers(-1000, 1000, 131, 257, dtype=ctx.dtype),))


@family.probe("max-argmax", "largest and smallest elements and where they are")
def max_argmax(ctx: Context) -> Case:
    return Case(lambda x: [x.max(), *x.max(1), *x.min(0), x.argmax(1)], (ctx.distinct(15, 17),), exact=True)


@family.probe("variance", "variance, standard deviation and norm along an axis")
def variance(ctx: Context) -> Case:
    return Case(lambda x: [x.var(1), x.std(0), torch.linalg.vector_norm(x, dim=1)], (ctx.randn(65, 1025),))


@family.probe("logsumexp", "logarithm of a sum of exponentials")
def logsumexp(ctx: Context) -> Case:
    return Case(lambda x: torch.logsumexp(x, 1), (ctx.randn(33, 1001, scale=4),))


@family.probe("product", "products along an axis", ("float32",))
def product(ctx: Context) -> Case:
    return Case(lambda x: [x.prod(1), x.cumprod(1)], (ctx.uniform(0.8, 1.25, 33, 65),))


@family.probe("cumsum", "running sums along rows and columns", ("float32", "float16", "int32"), tags=("scan",))
def cumsum(ctx: Context) -> Case:
    x = ctx.uniform(0, 1, 33, 513) if ctx.dtype.is_floating_point else ctx.integers(-9, 9, 33, 513, dtype=ctx.dtype)
    return Case(lambda x: [x.cumsum(0), x.cumsum(1)], (x,))


@family.probe("any-all", "truth of any and of all, and counts", ("float32",))
def any_all(ctx: Context) -> Case:
    return Case(
        lambda x: [(x > 3).any(1), (x > -9).all(0), (x > 0).sum(), torch.count_nonzero(x)], (ctx.randn(33, 513),)
    )


@family.probe("sum-backward", "gradient of a mean of squares", ("float32", "bfloat16"))
def sum_backward(ctx: Context) -> Case:
    return Case(lambda x: x.square().mean(1), (ctx.randn(65, 129),), backward=True)
