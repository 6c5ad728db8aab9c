"""A CUDA or HIP graph: the launches of some work, kept to be launched again as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeviceGraph", "can", "make", "memory"]

T = TypeVar("T")

_anchors: dict[torch.device, torch.cuda.CUDAGraph] = {}
_sides: dict[torch.device, torch.cuda.Stream] = {}


class DeviceGraph:
    """One graph."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.graph = torch.cuda.CUDAGraph()

    def capture(self, work: Callable[[], T]) -> T:
        """Call ``work`` and keep its launches, which are not made; return what it returned.

        Raises:
            RuntimeError: something in it cannot be part of a graph.
        """
        pool = _pool(self.device)
        side = _side_stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            self.graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                result = work()
            finally:
                self.graph.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(side)
        return result

    def replay(self) -> None:
        """Make the launches."""
        self.graph.replay()


def can(device: torch.device) -> bool:
    """Return whether a device has graphs."""
    return device.type == "cuda"


def memory(device: torch.device) -> int:
    """Return how many bytes of memory a device has."""
    return int(torch.cuda.get_device_properties(device).total_memory)


def make(device: torch.device) -> Any:
    """Return a new graph of a device that has them."""
    return DeviceGraph(device)


def _pool(device: torch.device) -> Any:
    """Return the memory that all graphs share: they run one after another, and results are copied out.

    Torch gives the memory up with the last graph that uses it; a graph of nothing much is kept so that this never is.
    """
    anchor = _anchors.get(device)
    if anchor is None:
        anchor = torch.cuda.CUDAGraph()
        side = _side_stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            anchor.capture_begin(capture_error_mode="thread_local")
            torch.zeros(1, device=device)
            anchor.capture_end()
        _anchors[device] = anchor
    return anchor.pool()


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    side = _sides.get(device)
    if side is None:
        side = _sides[device] = torch.cuda.Stream(device)
    return side
