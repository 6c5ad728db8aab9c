"""Semaphores and scratch memory for kernels whose last program finishes the work of all: one launch instead of two.

Launches of one stream run one after another, so they can share a workspace of the stream: a call allocates nothing but
its result, and a counter is zero before a launch and zero after it. Graphs are replayed on any stream, so a launch that
is captured in one has counters of its own, and scratch memory of the graph's pool. On NVIDIA GPUs it has none and takes
two launches: in a graph the second costs less than waiting for the last program (H200: decoding with 4,096 keys 7.7 for
10.3 µs, the best of 151,936 numbers for each of 64 rows 21.7 for 29.5).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate, executor

MAX_COUNTERS = 1 << 12
MAX_BYTES = 1 << 24
"""Largest workspace of a launch; those that need more take two launches."""
ONE_LAUNCH_IN_GRAPHS = torch.version.hip is not None


class Workspace(NamedTuple):
    """Memory that a launch may use until its end.

    Args:
        counters: Zeros, int32; the launch leaves zeros.
        scratch: Uninitialised, int64; seen as whatever the launch needs.
    """

    counters: torch.Tensor
    scratch: torch.Tensor


class _Arena:
    """Zeroed counters for captured launches: each takes some for good, as its graph may be replayed at any time.

    They are not returned when a capture fails or a graph is gone: 256 KiB hold 65,536 of them.
    """

    SIZE = 1 << 16
    ALIGNMENT = 4  # counters: 16 bytes, as kernels are compiled for

    def __init__(self, device: torch.device) -> None:
        self._counters = torch.zeros(self.SIZE, dtype=torch.int32, device=device)
        torch.cuda.synchronize(device)  # a graph may be replayed on a stream that knows nothing of this stream
        self._used = 0
        self._lock = threading.Lock()

    def take(self, count: int) -> torch.Tensor | None:
        """Return counters that nobody else has, or None where too few are left."""
        with self._lock:
            if self.left < count:
                return None
            first = self._used
            self._used += -(-count // self.ALIGNMENT) * self.ALIGNMENT
            return self._counters[first : first + count]

    @property
    def left(self) -> int:
        """Counters that are left."""
        return self.SIZE - self._used


_workspaces: dict[tuple[int, int], Workspace] = {}
_arenas: dict[int, list[_Arena]] = {}
"""By device, the last one in use: no memory can be zeroed for good while a graph is captured."""
_stream_of: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # noqa: SLF001  as Triton's driver does
_capturing: Any = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)  # noqa: SLF001  without a frame of Python


def fits(counters: int, size_bytes: int) -> bool:
    """Return whether ``workspace`` can be that large; asked when a call is planned."""
    return counters <= MAX_COUNTERS and size_bytes <= MAX_BYTES


def workspace(device: torch.device, counters: int, size_bytes: int) -> Workspace | None:
    """Return the workspace of the device's current stream for one launch, or None if there is none now.

    Args:
        device: The launch's.
        counters: Number of counters.
        size_bytes: Size of the scratch memory.
    """
    if device.type != "cuda":
        captured = getattr(executor.switch.active, "workspace", None) if device.type == "meta" else None
        if captured is not None:  # the call is being captured
            return Workspace(*captured(counters, size_bytes))
        zeros = torch.zeros(counters, dtype=torch.int32, device=device)
        return Workspace(zeros, allocate.empty((-(-size_bytes // 8),), dtype=torch.int64, device=device))
    index = device.index
    if _stream_of is None or _capturing is None or index != allocate.current_device():
        return None  # whether a stream is being captured is known of the current device's alone
    if _capturing():
        return _captured(device, counters, size_bytes) if ONE_LAUNCH_IN_GRAPHS else None
    found = _workspaces.get((index, _stream_of(index)))
    if found is None or found.scratch.numel() * 8 < size_bytes:
        return _make(device, size_bytes, found)
    return found


def _captured(device: torch.device, counters: int, size_bytes: int) -> Workspace | None:
    """Return a workspace for a launch that is captured, or None where too few counters are left."""
    taken = _arenas[device.index][-1].take(counters) if device.index in _arenas else None
    if taken is None:
        for key in [key for key in _workspaces if key[0] == device.index]:
            del _workspaces[key]  # the next launch that is not captured makes another arena
        return None
    return Workspace(taken, torch.empty(-(-size_bytes // 8), dtype=torch.int64, device=device))


def _make(device: torch.device, size_bytes: int, before: Workspace | None) -> Workspace:
    """Make a stream's workspace, or enlarge it: the old memory is freed in the stream's order."""
    zeros = torch.zeros(MAX_COUNTERS, dtype=torch.int32, device=device) if before is None else before.counters
    if device.index not in _arenas or _arenas[device.index][-1].left < MAX_COUNTERS:
        _arenas.setdefault(device.index, []).append(_Arena(device))
    size = max(1 << 20, 1 << (size_bytes - 1).bit_length())
    made = Workspace(zeros, torch.empty(size // 8, dtype=torch.int64, device=device))
    _workspaces[device.index, _stream_of(device.index)] = made  # type: ignore[misc]  # workspace asked whether there is a stream
    return made
