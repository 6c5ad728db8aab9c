"""Element-wise arithmetic."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import FLOATS, Family

family = Family("elementwise")


@family.probe("add", "add two tensors", (*FLOATS, "float64", "complex64"))
def add(ctx: Context) -> Case:
    return Case(torch.add, (ctx.randn(100_003), ctx.randn(100_003)))


@family.probe("arithmetic-broadcast", "multiply and add with broadcasting over three axes")
def broadcast(ctx: Context) -> Case:
    return Case(lambda a, b, c: a * b + c, (ctx.randn(17, 1, 65), ctx.randn(33, 1), ctx.randn(65)))


@family.probe("arithmetic-strided", "add tensors of which none is contiguous", ("float32", "float16"))
def strided(ctx: Context) -> Case:
    return Case(lambda a, b: a.t() + b[:, ::2], (ctx.randn(127, 65), ctx.randn(65, 254)))


@family.probe("exp-log", "exponentials, logarithms and powers")
def exp_log(ctx: Context) -> Case:
    return Case(
        lambda x: [torch.exp(x), torch.log(x), torch.log1p(x), torch.expm1(x), torch.pow(x, 1.5), torch.rsqrt(x)],
        (ctx.uniform(0.1, 3, 10_007),),
    )


@family.probe("trigonometry", "sine, cosine, tangent and their inverses", ("float32", "float16"))
def trigonometry(ctx: Context) -> Case:
    return Case(
        lambda x: [torch.sin(x), torch.cos(x), torch.atan(x), torch.tanh(x), torch.asin(x), torch.sinh(x)],
        (ctx.uniform(-0.95, 0.95, 10_007),),
    )


@family.probe("erf", "error function and its relatives", ("float32",))
def erf(ctx: Context) -> Case:
    return Case(lambda x: [torch.erf(x), torch.erfc(x), torch.lgamma(x.abs() + 1)], (ctx.uniform(-2, 2, 10_007),))


@family.probe("where-clamp", "choose, clamp and compare")
def where_clamp(ctx: Context) -> Case:
    return Case(
        lambda x, y: [torch.where(x > y, x, y), x.clamp(-0.5, 0.5), (x <= y), torch.maximum(x, y)],
        (ctx.randn(10_007), ctx.randn(10_007)),
        exact=True,
        # the constants are exact in every dtype, so nothing may be rounded
    )


@family.probe(
    "integer-arithmetic", "whole numbers: multiply, divide, remainder, shift, bits", ("int32", "int64", "int8")
)
def integers(ctx: Context) -> Case:
    def calculate(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [x * y, torch.div(x, y, rounding_mode="floor"), x % y, x & y, x ^ y, x << 1, x >> 2, ~x]

    x = ctx.integers(-11, 12, 10_007, dtype=ctx.dtype)
    return Case(calculate, (x, ctx.integers(1, 12, 10_007, dtype=ctx.dtype)))


@family.probe("special-values", "infinities, NaN and signed zeros pass through as IEEE 754 says", tags=("numerics",))
def special_values(ctx: Context) -> Case:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, inf, -inf, nan, 1.0, -1.0] * 37, dtype=ctx.dtype)

    def calculate(x: torch.Tensor) -> list[torch.Tensor]:
        return [x + 1, 1 / x, x * 0, torch.isnan(x), torch.isfinite(x), x.max(), torch.nan_to_num(x, 0.0, 9.0, -9.0)]

    return Case(calculate, (x,))


@family.probe("denormals", "numbers below the smallest normal one are kept", ("float32",), tags=("numerics",))
def denormals(ctx: Context) -> Case:
    x = torch.tensor([1e-40, -3e-39, 1.4e-45, 1e-38], dtype=ctx.dtype).repeat(100)
    return Case(lambda x: x + 0, (x,), exact=True)


@family.probe("tiny-sizes", "tensors of 0, 1, 2, 3, 63, 64, 65 elements")
def tiny_sizes(ctx: Context) -> Case:
    tensors = tuple(ctx.randn(size) for size in (0, 1, 2, 3, 63, 64, 65))
    return Case(lambda *many: [one * 2 + 1 for one in many], tensors)
