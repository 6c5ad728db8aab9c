"""How much memory the columns of one block of a convolution may take."""

from __future__ import annotations

import os

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
