"""Blocks of a convolution's output positions, and how much memory the columns of one may take."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

import torch

_SMALL_BYTES = 64 << 20
"""A need up to this is never worth asking the driver about."""
_LARGEST_BYTES = 1 << 30
"""More than this makes matrix products no faster."""
_LEAST_BYTES = 4 << 20
_FIXED_BYTES = 256 << 20
"""Where the amount may not depend on what is free: deterministic runs, and the capture of a graph."""
_SHARE = 4
"""One part in so many of what is free is taken."""


def _free_bytes(device: torch.device) -> int:
    """Return bytes that a new tensor could take: free on the device, and held unused by PyTorch's allocator."""
    if device.type != "cuda":
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def workspace_bytes(device: torch.device, needed_bytes: int) -> int:
    """Return how many bytes of columns a convolution on ``device`` may hold at a time.

    Args:
        device: Where it runs.
        needed_bytes: What it would take in one piece.

    Returns:
        At most 1 GiB and a quarter of the free memory; a fixed 256 MiB in deterministic runs and during graph capture.
    """
    if needed_bytes <= _SMALL_BYTES:
        return _SMALL_BYTES
    capturing = device.type == "cuda" and torch.cuda.is_current_stream_capturing()
    if capturing or torch.are_deterministic_algorithms_enabled():
        return _FIXED_BYTES
    return max(_LEAST_BYTES, min(_LARGEST_BYTES, _free_bytes(device) // _SHARE))


def blocks(shape: Sequence[int], limit: int) -> Iterator[tuple[slice, ...]]:
    """Cut an index space into boxes of at most ``limit`` positions, splitting leading axes first.

    Args:
        shape: Size of each axis.
        limit: Positions in a box at most; at least one is always taken.
    """
    if not shape or math.prod(shape) <= limit:
        yield tuple(slice(0, size) for size in shape)
        return
    inner = math.prod(shape[1:])
    if inner <= limit:
        step = max(1, limit // max(1, inner))
        rest = tuple(slice(0, size) for size in shape[1:])
        for start in range(0, shape[0], step):
            yield (slice(start, min(start + step, shape[0])), *rest)
        return
    for start in range(shape[0]):
        for tail in blocks(shape[1:], limit):
            yield (slice(start, start + 1), *tail)
