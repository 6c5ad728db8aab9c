"""Copies between host and device, on the device, and between devices."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("copies", tags=("sdma", "memory", "asyncuploads"))

ODD = 1_000_003
"""Elements: neither a power of two nor a multiple of a page."""


@family.probe("copy-pageable", "pageable memory to the device and back", ("float32", "float16", "int32"), smoke=True)
def copy_pageable(ctx: Context) -> Case:
    def there_and_back(source: torch.Tensor) -> torch.Tensor:
        return source.to(ctx.device).clone().cpu()

    source = ctx.randn(ODD) if ctx.dtype.is_floating_point else ctx.integers(-(2**31), 2**31, ODD, dtype=ctx.dtype)
    return Case(lambda _: there_and_back(source), (source,), reference=lambda _: source, exact=True, host=True)


@family.probe("copy-pinned", "pinned memory to the device and back, non-blocking", ("float32",), needs=("cuda",))
def copy_pinned(ctx: Context) -> Case:
    source = ctx.randn(ODD)
    pinned = source.pin_memory()

    def there_and_back(_: torch.Tensor) -> torch.Tensor:
        on_device = pinned.to(ctx.device, non_blocking=True)
        back = torch.empty_like(pinned).pin_memory()
        back.copy_(on_device, non_blocking=True)
        torch.cuda.synchronize(ctx.device)
        return back

    return Case(there_and_back, (source,), reference=lambda _: source, exact=True, host=True)


@family.probe(
    "copy-overlapped",
    "uploads on a second stream while the first one computes",
    ("float32",),
    needs=("cuda",),
    tags=("queues",),
)
def copy_overlapped(ctx: Context) -> Case:
    parts = [ctx.randn(1 << 18) for _ in range(8)]
    pinned = [part.pin_memory() for part in parts]

    def overlapped(_: torch.Tensor) -> torch.Tensor:
        stream, total = torch.cuda.Stream(ctx.device), torch.zeros(1 << 18, device=ctx.device)
        for part in pinned:
            with torch.cuda.stream(stream):
                uploaded = part.to(ctx.device, non_blocking=True)
            torch.cuda.current_stream(ctx.device).wait_stream(stream)
            uploaded.record_stream(torch.cuda.current_stream(ctx.device))
            total = total + uploaded
        return total

    return Case(overlapped, (parts[0],), reference=lambda _: sum(part.double() for part in parts), host=True)


@family.probe("copy-strided", "every third element of every second row, transposed", ("float32", "bfloat16"))
def copy_strided(ctx: Context) -> Case:
    return Case(lambda x: x[::2, 1::3].t().contiguous(), (ctx.randn(301, 517),), exact=True)


@family.probe("copy-overwrite", "a strided part of a tensor overwritten in place", ("float32", "float16"))
def copy_overwrite(ctx: Context) -> Case:
    def overwrite(base: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
        changed = base.clone()
        changed[3::4, ::5] = part
        return changed

    return Case(overwrite, (ctx.randn(128, 125), ctx.randn(32, 25)), exact=True)


@family.probe("copy-large", "8 MiB from one place on the device to another", ("float32",))
def copy_large(ctx: Context) -> Case:
    return Case(lambda x: torch.empty_like(x).copy_(x), (ctx.randn(2 << 20),), exact=True)


@family.probe("copy-cast", "casts between the float dtypes and back to float32", ("float32",))
def copy_cast(ctx: Context) -> Case:
    def casts(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.to(dtype).float() for dtype in (torch.float16, torch.bfloat16, torch.float64)]

    x = ctx.randn(100_003)
    return Case(casts, (x,), reference=lambda _: casts(x), exact=True)


@family.probe(
    "copy-peer", "from one GPU's memory to another's and back", ("float32",), needs=("two-devices",), tags=("multigpu",)
)
def copy_peer(ctx: Context) -> Case:
    first = ctx.device.index or 0
    other = torch.device("cuda", (first + 1) % torch.cuda.device_count())

    def around(x: torch.Tensor) -> torch.Tensor:
        return (x.to(other) * 2).to(x.device)

    return Case(around, (ctx.randn(ODD),), reference=lambda x: x * 2, exact=True)


@family.probe(
    "copy-fine-grained",
    "a kernel reads and writes host memory that it shares with the CPU",
    ("float32",),
    needs=("cuda",),
    tags=("svm", "finegrained", "rdna1"),
)
def copy_fine_grained(ctx: Context) -> Case:
    from rocmend.probe.shared_memory import SharedBlock

    source = ctx.randn(100_003)

    def through(_: torch.Tensor) -> torch.Tensor:
        block = SharedBlock(source.numel(), ctx.device)
        try:
            block.write(source)
            view = block.on_device()
            view.mul_(2).add_(1)
            torch.cuda.synchronize(ctx.device)
            return block.read()
        finally:
            torch.cuda.synchronize(ctx.device)
            block.free()

    return Case(through, (source,), reference=lambda x: x * 2 + 1, host=True)
