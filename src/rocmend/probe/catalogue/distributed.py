"""Work over two GPUs."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("distributed", tags=("rccl", "multigpu"), allowance="library", alone=True)


@family.probe(
    "all-reduce", "sum over two GPUs by RCCL or NCCL, a process each", ("float32", "bfloat16"), needs=("two-devices",)
)
def all_reduce(ctx: Context) -> Case:
    from rocmend.probe.catalogue._all_reduce import reduced

    parts = torch.stack([ctx.randn(100_003) for _ in range(2)])
    return Case(reduced, (parts,), reference=lambda parts: parts.sum(0, keepdim=True).expand(2, -1), host=True)
