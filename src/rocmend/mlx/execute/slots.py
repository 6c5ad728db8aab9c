"""Integers in device memory: what changes from step to step, so that a captured graph need not be captured again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Slots"]

RING = 16  # steps that may be on their way to the device at once


class Slots:
    """A few integers that the host sets before each step.

    The host writes to one of several rows of pinned memory, which a copy on the stream then reads: a row is written
    to again only after the copy that read it is done.
    """

    def __init__(self, count: int, device: torch.device) -> None:
        self.device = torch.zeros(count, dtype=torch.int32, device=device)
        self.rows = torch.zeros((RING, count), dtype=torch.int32, pin_memory=device.type == "cuda")
        self.written = self.rows.numpy()
        self.events = [torch.cuda.Event() for _ in range(RING)] if device.type == "cuda" else []
        self.turn = 0

    def one(self, index: int) -> torch.Tensor:
        """Return the place of an integer: int32, of shape ``(1,)``."""
        return self.device[index : index + 1]

    def set(self, values: Sequence[int]) -> None:
        """Send integers to the device, behind the work that was queued before."""
        row = self.turn % RING
        if self.events and self.turn >= RING:
            self.events[row].synchronize()
        self.written[row] = values
        self.device.copy_(self.rows[row], non_blocking=True)
        if self.events:
            self.events[row].record(torch.cuda.current_stream(self.device.device))
        self.turn += 1
