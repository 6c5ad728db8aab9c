"""Sorting and searching."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("sorting")


@family.probe("sort", "sort with the places of the elements", ("float32", "float16", "int32"))
def sort(ctx: Context) -> Case:
    return Case(lambda x: [*x.sort(dim=1), *x.sort(dim=0, descending=True)], (ctx.distinct(31, 65),), exact=True)


@family.probe("sort-large", "sort three hundred thousand elements", ("float32",))
def sort_large(ctx: Context) -> Case:
    return Case(lambda x: list(x.sort()), (ctx.distinct(300_007),), exact=True)


@family.probe("argsort-stable", "stable order of elements that are often equal", ("int32", "float32"))
def argsort(ctx: Context) -> Case:
    return Case(lambda x: x.argsort(dim=1, stable=True), (ctx.integers(0, 7, 17, 301).to(ctx.dtype),), exact=True)


@family.probe("topk", "the largest and smallest few", ("float32", "float16"))
def topk(ctx: Context) -> Case:
    return Case(lambda x: [*x.topk(5), *x.topk(3, largest=False)], (ctx.distinct(31, 65),), exact=True)


@family.probe("topk-wide", "the largest 50 of 128 thousand, as a sampler takes them", ("float32",))
def topk_wide(ctx: Context) -> Case:
    return Case(lambda x: list(x.topk(50)), (ctx.distinct(2, 128_259),), exact=True)


@family.probe("unique", "distinct values with their counts", ("int64",))
def unique(ctx: Context) -> Case:
    return Case(
        lambda x: list(torch.unique(x, return_inverse=True, return_counts=True)),
        (ctx.integers(0, 50, 2003),),
        exact=True,
    )


@family.probe("searchsorted", "binary search, and sorting into bins", ("float32",))
def searchsorted(ctx: Context) -> Case:
    edges = torch.arange(100, dtype=ctx.dtype)
    return Case(
        lambda edges, x: [torch.searchsorted(edges, x), torch.bucketize(x, edges, right=True)],
        (edges, ctx.uniform(-5, 105, 1001)),
        exact=True,
    )


@family.probe("median", "median and k-th smallest", ("float32",))
def median(ctx: Context) -> Case:
    return Case(lambda x: [x.median(1).values, x.kthvalue(7, 1).values], (ctx.distinct(33, 129),), exact=True)
