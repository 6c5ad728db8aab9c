"""Matrix products: every dtype, odd shapes, batches, strides."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import FLOATS, Family
from rocmend.runner.torch_device import UnsupportedError

family = Family("matmul", tags=("gemm", "hipblaslt", "rocblas"))


@family.probe("matmul", "256 x 512 by 512 x 256", (*FLOATS, "float64", "complex64"), smoke=True)
def matmul(ctx: Context) -> Case:
    return Case(torch.matmul, (ctx.randn(256, 512), ctx.randn(512, 256)))


@family.probe("matmul-odd", "127 x 63 by 63 x 257", (*FLOATS, "float64"))
def matmul_odd(ctx: Context) -> Case:
    return Case(torch.matmul, (ctx.randn(127, 63), ctx.randn(63, 257)))


@family.probe("matmul-deep", "17 x 8192 by 8192 x 31: a long sum in each element")
def matmul_deep(ctx: Context) -> Case:
    return Case(torch.matmul, (ctx.randn(17, 8192), ctx.randn(8192, 31)))


@family.probe("matmul-vector", "matrix by vector, and one row by a matrix", tags=("decode",))
def matmul_vector(ctx: Context) -> Case:
    return Case(
        lambda a, v, r: [a @ v, r @ a, torch.outer(v[:33], v)],
        (ctx.randn(511, 1023), ctx.randn(1023), ctx.randn(1, 511)),
    )


@family.probe("matmul-thin", "an inner size of 1, and one row or column")
def matmul_thin(ctx: Context) -> Case:
    return Case(lambda a, b: [a @ b, b.t()[:, :1] @ b[:, :1].t()], (ctx.randn(255, 1), ctx.randn(1, 129)))


@family.probe("matmul-transposed", "either or both factors transposed")
def matmul_transposed(ctx: Context) -> Case:
    return Case(lambda a, b: [a.t() @ b.t(), a.t() @ b.t().contiguous()], (ctx.randn(96, 130), ctx.randn(70, 96)))


@family.probe("matmul-integer", "8-bit factors, 32-bit sums", ("int8",), tags=("int8",))
def matmul_integer(ctx: Context) -> Case:
    a, b = ctx.integers(-128, 128, 64, 96, dtype=ctx.dtype), ctx.integers(-128, 128, 96, 32, dtype=ctx.dtype)
    multiply = getattr(torch, "_int_mm", None)
    if multiply is None:
        raise UnsupportedError(f"torch {torch.__version__} has no 8-bit matrix product")
    return Case(multiply, (a, b), reference=lambda a, b: (a.long() @ b.long()).int())


@family.probe("matmul-fp8", "8-bit floating-point factors", ("float8_e4m3fn",), needs=("cuda",), tags=("fp8",))
def matmul_fp8(ctx: Context) -> Case:
    plain = Context(ctx.device, torch.float32, ctx.generator)
    a, b = plain.randn(64, 128).to(ctx.dtype), plain.randn(64, 128).to(ctx.dtype)

    def scaled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        one = torch.ones((), device=a.device)
        return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # noqa: SLF001

    return Case(scaled, (a, b), reference=lambda a, b: a @ b.t())


@family.probe("matmul-into-nan", "a product written over memory full of NaN")
def matmul_into_nan(ctx: Context) -> Case:
    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        result = torch.full((a.shape[0], b.shape[1]), float("nan"), dtype=a.dtype, device=a.device)
        return torch.matmul(a, b, out=result)

    return Case(multiply, (ctx.randn(65, 96), ctx.randn(96, 33)))


@family.probe("addmm", "a bias and scaled product in one call")
def addmm(ctx: Context) -> Case:
    return Case(
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), (ctx.randn(65), ctx.randn(64, 48), ctx.randn(48, 65))
    )


@family.probe("einsum", "contraction over two axes at once", ("float32", "float16"))
def einsum(ctx: Context) -> Case:
    return Case(lambda a, b: torch.einsum("bhqd,bhkd->bhqk", a, b), (ctx.randn(2, 3, 17, 24), ctx.randn(2, 3, 19, 24)))


@family.probe("bmm", "a batch of products", (*FLOATS, "float64"))
def bmm(ctx: Context) -> Case:
    return Case(torch.bmm, (ctx.randn(7, 65, 48), ctx.randn(7, 48, 33)))


@family.probe("bmm-strided", "a batch whose matrices are interleaved and transposed")
def bmm_strided(ctx: Context) -> Case:
    def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.transpose(1, 2), b.permute(0, 2, 3, 1))

    return Case(multiply, (ctx.randn(2, 33, 5, 24), ctx.randn(2, 17, 5, 24)))


@family.probe(
    "bmm-uneven-strides", "batches expanded, sliced and stepped over: no one stride leads from one to the next"
)
def bmm_uneven(ctx: Context) -> Case:
    def multiply(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        sliced = a[::2, 1:, :, ::2]
        return [torch.matmul(sliced, b.expand(2, 3, 16, 20)), torch.matmul(sliced[:, ::2], b[:, :1])]

    return Case(multiply, (ctx.randn(4, 4, 17, 32), ctx.randn(1, 3, 16, 20)))


@family.probe("linear", "a linear layer")
def linear(ctx: Context) -> Case:
    return Case(torch.nn.Linear(129, 65).to(ctx.dtype), (ctx.randn(4, 33, 129),))


@family.probe("linear-backward", "gradients of a linear layer", ("float32", "float16", "bfloat16"), tags=("training",))
def linear_backward(ctx: Context) -> Case:
    return Case(torch.nn.Linear(129, 65).to(ctx.dtype), (ctx.randn(4, 33, 129),), backward=True)
