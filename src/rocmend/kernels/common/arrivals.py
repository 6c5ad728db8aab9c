"""Counters and scratch memory for kernels whose last program finishes what all of them began: one launch, not two.

Launches of one stream run one after another, so that they can share what belongs to the stream: a call allocates
nothing but its result, and a counter is zero before a launch and zero after it. A launch that is captured in a graph
has none of this, as graphs are replayed on any stream: two launches cost a graph next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate, executor

MOST_COUNTERS = 1 << 12
MOST_BYTES = 1 << 24
"""What a launch can have of a stream's; greater ones go the other way."""


class Room(NamedTuple):
    """What a launch may use until its end.

    Args:
        counters: Zeros, int32; the launch leaves zeros.
        scratch: Uninitialised, int64; seen as whatever the launch needs.
    """

    counters: torch.Tensor
    scratch: torch.Tensor


_rooms: dict[tuple[int, int], Room] = {}
_stream_of: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001  as Triton's driver does
_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # noqa: SLF001  without a frame of Python


def fits(counters: int, size_bytes: int) -> bool:
    """Return whether ``room`` can have that much; asked when a call is planned."""
    return counters <= MOST_COUNTERS and size_bytes <= MOST_BYTES


def room(device: torch.device, counters: int, size_bytes: int) -> Room | None:
    """Return room for one launch on the device's current stream, or None where there is none.

    Args:
        device: The launch's.
        counters: How many it counts with.
        size_bytes: Scratch memory it needs.
    """
    if device.type != "cuda":
        captured = getattr(executor.switch.active, "workspace", None) if device.type == "meta" else None
        if captured is not None:  # the call is being captured
            return Room(*captured(counters, size_bytes))
        zeros = torch.zeros(counters, dtype=torch.int32, device=device)
        return Room(zeros, allocate.empty((-(-size_bytes // 8),), dtype=torch.int64, device=device))
    index = device.index
    if _stream_of is None or _capturing is None or _capturing():
        return None
    found = _rooms.get((index, _stream_of(index)))
    if found is None or found.scratch.numel() * 8 < size_bytes:
        return _make(device, size_bytes, found)
    return found


def _make(device: torch.device, size_bytes: int, before: Room | None) -> Room:
    """Make a stream's room, or enlarge it: what was there is freed in the stream's order."""
    zeros = torch.zeros(MOST_COUNTERS, dtype=torch.int32, device=device) if before is None else before.counters
    size = max(1 << 20, 1 << (size_bytes - 1).bit_length())
    made = Room(zeros, torch.empty(size // 8, dtype=torch.int64, device=device))
    _rooms[device.index, _stream_of(device.index)] = made  # type: ignore[misc]  # room asked whether there is one
    return made
