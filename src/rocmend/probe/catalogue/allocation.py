"""Device memory: taken, filled, given back, taken again."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("allocation", tags=("allocator", "memory"))


@family.probe("allocate-fill", "fill 64 MiB and read all of it back", ("float32", "float16"))
def allocate_fill(ctx: Context) -> Case:
    elements = (64 << 20) // ctx.dtype.itemsize

    def fill(value: torch.Tensor) -> torch.Tensor:
        block = torch.empty(elements, dtype=ctx.dtype, device=value.device)
        block.fill_(1.5)
        return torch.stack([block.min(), block.max(), block[-1] + value])

    return Case(
        fill, (ctx.integers(1, 2, 1)[0].to(ctx.dtype),), reference=lambda value: value.new_tensor([1.5, 1.5, 2.5])
    )


@family.probe("allocate-many", "300 live blocks of odd sizes keep their own values", ("float32",))
def allocate_many(ctx: Context) -> Case:
    sizes = [int(size) for size in ctx.integers(1, 20_000, 300)]

    def blocks(start: torch.Tensor) -> torch.Tensor:
        made = [torch.full((size,), float(place), device=start.device) for place, size in enumerate(sizes)]
        del made[::3]
        made += [torch.full((size,), -1.0, device=start.device) for size in sizes[::3]]
        return torch.stack([block.max() for block in made] + [block.min() for block in made]) + start

    kept = [float(place) for place in range(300) if place % 3]
    wanted = [*kept, *([-1.0] * 100)]
    return Case(blocks, (torch.zeros(1),), reference=lambda start: start.new_tensor(wanted * 2), exact=True)


@family.probe("allocate-reuse", "a block given back and taken again holds what is written last", ("float32",))
def allocate_reuse(ctx: Context) -> Case:
    def reuse(values: torch.Tensor) -> torch.Tensor:
        for step in range(20):
            scratch = values * step
            del scratch
        return values + 1

    return Case(reuse, (ctx.randn(1 << 18),), reference=lambda values: values + 1)


@family.probe("allocate-zeros", "zeroed memory is zero", ("float32", "int32"))
def allocate_zeros(ctx: Context) -> Case:
    def zeros(like: torch.Tensor) -> torch.Tensor:
        return torch.zeros(100_003, dtype=like.dtype, device=like.device)

    like = torch.zeros(1, dtype=ctx.dtype)
    return Case(zeros, (like,), reference=lambda start: start.new_zeros(100_003), exact=True)
