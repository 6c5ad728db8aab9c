"""An all-reduce over two processes, on a GPU each or on the CPU; imported only inside the child."""

from __future__ import annotations

import datetime as dt

import torch

from rocmend.core.scratch import ScratchFolder

RANKS = 2
TIME_LIMIT_S = 120


def _rank(rank: int, folder: str, parts: torch.Tensor, kind: str) -> None:
    import torch.distributed as dist

    device = torch.device(kind, rank) if kind == "cuda" else torch.device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if kind == "cuda" else "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=RANKS,
        timeout=dt.timedelta(seconds=TIME_LIMIT_S),
    )
    mine = parts[rank].clone().to(device)  # the tensor is shared between the processes
    dist.all_reduce(mine)
    torch.save(mine.cpu(), f"{folder}/{rank}.pt")
    dist.barrier(device_ids=[rank] if kind == "cuda" else None)
    dist.destroy_process_group()


def reduced(parts: torch.Tensor) -> torch.Tensor:
    """Return what each of the two ranks holds after the sum, on the CPU.

    Args:
        parts: What the ranks begin with, along the first axis; they work on its kind of device.
    """
    from torch.multiprocessing.spawn import spawn

    with ScratchFolder("reduce") as folder:
        spawn(_rank, (str(folder), parts.cpu(), parts.device.type), nprocs=RANKS)
        return torch.stack([torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(RANKS)])
