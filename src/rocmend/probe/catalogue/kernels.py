"""Triton kernels compiled for the device."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("triton", tags=("triton", "jit"), allowance="jit", slow="triton")

NEEDS = ("cuda", "triton")


@family.probe("triton-add", "an element-wise kernel", ("float32", "float16", "bfloat16"), needs=NEEDS)
def triton_add(ctx: Context) -> Case:
    from rocmend.probe.catalogue import _triton_kernels as kernels

    return Case(kernels.add, (ctx.randn(100_003), ctx.randn(100_003)), reference=torch.add)


@family.probe("triton-softmax", "a reduction in each program", ("float32", "float16"), needs=NEEDS)
def triton_softmax(ctx: Context) -> Case:
    from rocmend.probe.catalogue import _triton_kernels as kernels

    return Case(kernels.softmax, (ctx.randn(65, 777),), reference=lambda x: torch.softmax(x, -1))


@family.probe(
    "triton-matmul", "matrix instructions by tl.dot", ("float16", "bfloat16"), needs=NEEDS, tags=("wmma", "mfma")
)
def triton_matmul(ctx: Context) -> Case:
    from rocmend.probe.catalogue import _triton_kernels as kernels

    return Case(kernels.matmul, (ctx.randn(129, 96), ctx.randn(96, 65)), reference=torch.matmul)


@family.probe("triton-atomics", "a histogram by atomic additions", ("int32",), needs=NEEDS, tags=("atomics",))
def triton_atomics(ctx: Context) -> Case:
    from rocmend.probe.catalogue import _triton_kernels as kernels

    values = ctx.integers(0, 32, 50_003, dtype=ctx.dtype)
    return Case(
        kernels.histogram, (values,), reference=lambda x: torch.bincount(x, minlength=32).int(), must_repeat=True
    )
