"""``mlx.core.distributed``: what processes do together."""

from __future__ import annotations

from rocmend.mlx.distributed.collectives import (
    all_gather,
    all_max,
    all_min,
    all_sum,
    recv,
    recv_like,
    send,
    sum_scatter,
)
from rocmend.mlx.distributed.group import Group, init, is_available

__all__ = [
    "Group",
    "all_gather",
    "all_max",
    "all_min",
    "all_sum",
    "init",
    "is_available",
    "recv",
    "recv_like",
    "send",
    "sum_scatter",
]
