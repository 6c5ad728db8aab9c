"""Small results on their way to the host as soon as they are computed.

A program that reads a token while the next step is under way must not wait for that step: the copy stands in the queue
right behind the step that made the token, and reading waits for the copy alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["fetched", "start"]

SMALL = 64  # elements
RING = 8  # copies of one shape and type that may be unread at once


class _Ring:
    """Pinned places for values of one shape and type."""

    __slots__ = ("events", "of", "places", "turn")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.places = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for _ in range(RING)]
        self.events = [torch.cuda.Event() for _ in range(RING)]
        self.of: list[torch.Tensor | None] = [None] * RING
        self.turn = 0

    def start(self, tensor: torch.Tensor) -> None:
        turn = self.turn = (self.turn + 1) % RING
        self.places[turn].copy_(tensor, non_blocking=True)
        self.events[turn].record(torch.cuda.current_stream(tensor.device))  # the thread's may be another GPU's
        self.of[turn] = tensor

    def find(self, tensor: torch.Tensor) -> torch.Tensor | None:
        for turn, of in enumerate(self.of):
            if of is tensor:
                self.events[turn].synchronize()
                return self.places[turn].clone()
        return None


_rings: dict[Any, _Ring] = {}


def start(tensors: Iterable[Any]) -> None:
    """Queue copies of the small ones among some results."""
    for tensor in tensors:
        if type(tensor) is torch.Tensor and tensor.is_cuda and tensor.numel() <= SMALL:
            key = (tensor.shape, tensor.dtype, tensor.device)
            ring = _rings.get(key)
            if ring is None:
                if len(_rings) >= 64:
                    _rings.clear()
                ring = _rings[key] = _Ring(tensor)
            ring.start(tensor)


def fetched(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on the CPU: the copy that is there or under way, or a new one."""
    if tensor.is_cuda:
        ring = _rings.get((tensor.shape, tensor.dtype, tensor.device))
        found = ring.find(tensor) if ring is not None else None
        return tensor.cpu() if found is None else found
    return tensor
