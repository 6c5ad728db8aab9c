"""Random numbers: their statistics, and that a seed fixes them."""

from __future__ import annotations

import math
from collections.abc import Callable

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("random")

COUNT = 200_000
_SIGMAS = 6  # one false alarm in a thousand million


def near(name: str, value: float, wanted: float, deviation: float) -> str:
    """Return what is wrong where a sample statistic is further from its expectation than chance explains."""
    if math.isfinite(value) and abs(value - wanted) <= _SIGMAS * deviation:
        return ""
    return f"the {name} is {value:.6g}, expected {wanted:.6g} ± {_SIGMAS * deviation:.2g}"


def statistics(mean: float, variance: float, low: float, high: float) -> Callable[[list[torch.Tensor]], str]:
    """Return a check of mean, variance and range of a sample."""

    def check(results: list[torch.Tensor]) -> str:
        sample = results[0].double().cpu()
        if sample.isnan().any() or float(sample.min()) < low or float(sample.max()) > high:
            bounds = f"{float(sample.min()):.6g} to {float(sample.max()):.6g}"
            return f"values from {bounds} are outside of {low} to {high}, or NaN"
        count = sample.numel()
        # the deviation of a variance is at most that of a normal sample's for the distributions here
        return near("mean", float(sample.mean()), mean, math.sqrt(variance / count)) or near(
            "variance", float(sample.var()), variance, variance * math.sqrt(2 / count)
        )

    return check


@family.probe("random-uniform", "uniform numbers", ("float32", "float16"))
def uniform(ctx: Context) -> Case:
    # float16 rounds up to 1 now and then, and its mean with it: the sample is compared within 6 deviations all the same
    return Case(
        lambda x: torch.rand(COUNT, dtype=ctx.dtype, device=x.device),
        (torch.zeros(1),),
        check=statistics(0.5, 1 / 12, 0, 1),
    )


@family.probe("random-normal", "normal numbers", ("float32", "float16", "bfloat16"), smoke=True)
def normal(ctx: Context) -> Case:
    return Case(
        lambda x: torch.randn(COUNT, dtype=ctx.dtype, device=x.device), (torch.zeros(1),), check=statistics(0, 1, -8, 8)
    )


@family.probe("random-bernoulli", "truth values with a probability of 0.3", ("float32",))
def bernoulli(ctx: Context) -> Case:
    del ctx
    return Case(
        lambda x: torch.bernoulli(torch.full((COUNT,), 0.3, device=x.device)),
        (torch.zeros(1),),
        check=statistics(0.3, 0.21, 0, 1),
    )


@family.probe("dropout", "dropout keeps the share it should and scales it", ("float32", "float16"))
def dropout(ctx: Context) -> Case:
    return Case(
        lambda x: torch.nn.functional.dropout(torch.ones(COUNT, dtype=ctx.dtype, device=x.device), 0.5, training=True),
        (torch.zeros(1),),
        check=statistics(1, 1, 0, 2),
    )


@family.probe("randperm", "a random order holds each number once", ("int64",))
def randperm(ctx: Context) -> Case:
    del ctx

    def check(results: list[torch.Tensor]) -> str:
        order = results[0].cpu()
        counted = torch.arange(order.numel())
        if not torch.equal(order.sort().values, counted):
            return "numbers are missing or come twice"
        return "nothing was put in another order" if torch.equal(order, counted) else ""

    return Case(lambda x: torch.randperm(10_007, device=x.device), (torch.zeros(1),), check=check)


@family.probe("multinomial", "draws follow their weights", ("float32",))
def multinomial(ctx: Context) -> Case:
    weights = torch.tensor([0.1, 0.2, 0.3, 0.4])

    def check(results: list[torch.Tensor]) -> str:
        counts = torch.bincount(results[0].cpu(), minlength=4) / COUNT
        wrong = (
            near(f"share of {place}", float(counts[place]), float(weights[place]), 0.5 / math.sqrt(COUNT))
            for place in range(4)
        )
        return next((text for text in wrong if text), "")

    del ctx
    return Case(lambda w: torch.multinomial(w, COUNT, replacement=True), (weights,), check=check)


@family.probe("random-seed", "the same seed gives the same numbers, another one others", ("float32", "bfloat16"))
def seeded(ctx: Context) -> Case:
    def draw(x: torch.Tensor) -> list[torch.Tensor]:
        made = []
        for seed in (11, 11, 12):
            generator = torch.Generator(device=x.device).manual_seed(seed)
            made.append(torch.randn(1001, dtype=ctx.dtype, device=x.device, generator=generator))
        return made

    def check(results: list[torch.Tensor]) -> str:
        if not torch.equal(results[0], results[1]):
            return "the same seed gave other numbers"
        return "another seed gave the same numbers" if torch.equal(results[0], results[2]) else ""

    return Case(draw, (torch.zeros(1),), check=check, must_repeat=True)
