"""Memory that says who reads or writes what is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

BASE = 1 << 32
GAP = 4096
POISON = 0xFF
"""Bytes of what was never written: NaN in every floating type."""


class WrongAccessError(AssertionError):
    """A lane reads or writes what it must not."""


def _spread(addresses: Any, size: int) -> Any:
    """Return the numbers of so many bytes from each address on."""
    if (addresses % size).any():
        raise WrongAccessError(f"{size} bytes at {int(addresses[addresses % size != 0][0]):#x}, which is no multiple")
    return addresses.astype(np.int64)[:, None] + np.arange(size)


class Global:
    """Tensors with nothing between them."""

    def __init__(self) -> None:
        self._bytes = np.full(0, POISON, np.uint8)
        self._there = np.zeros(0, bool)
        self._placed: list[tuple[torch.Tensor, int]] = []

    def place(self, tensor: torch.Tensor) -> int:
        """Place a contiguous tensor, as it is; return its address, a multiple of 256."""
        held = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        start = -(-(self._bytes.size + GAP) // 256) * 256
        fill = start - self._bytes.size
        self._bytes = np.concatenate([self._bytes, np.full(fill, POISON, np.uint8), held])
        self._there = np.concatenate([self._there, np.zeros(fill, bool), np.ones(held.size, bool)])
        self._placed.append((tensor, start))
        return BASE + start

    def take_back(self) -> None:
        """Copy what the tensors hold now into them."""
        for tensor, start in self._placed:
            size = tensor.numel() * tensor.element_size()
            held = torch.from_numpy(self._bytes[start : start + size].copy())
            tensor.copy_(held.view(tensor.dtype).view(tensor.shape))

    def _at(self, addresses: Any, size: int) -> Any:
        at = _spread(addresses - np.uint64(BASE), size)
        outside = (at < 0).any() or (at >= self._bytes.size).any() or not self._there[at].all()
        if outside:
            raise WrongAccessError(f"{size} bytes outside of all tensors")
        return at

    def read(self, addresses: Any, size: int) -> Any:
        """Return ``[lanes, size]`` bytes."""
        return self._bytes[self._at(addresses, size)]

    def write(self, addresses: Any, data: Any) -> None:
        """Write ``[lanes, size]`` bytes."""
        self._bytes[self._at(addresses, data.shape[1])] = data


class Shared:
    """A program's shared memory, whose wavefronts have to meet before one sees what another wrote.

    Args:
        size: Bytes.
    """

    def __init__(self, size: int) -> None:
        self._bytes = np.full(size, POISON, np.uint8)
        # By byte: who wrote it and who read it since wavefronts met, or nobody (-1), or several (-2).
        self._writer = np.full(size, -1)
        self._reader = np.full(size, -1)

    def meet(self) -> None:
        """All wavefronts have met: what was written is there for all of them."""
        self._writer[:] = -1
        self._reader[:] = -1

    def _at(self, addresses: Any, size: int) -> Any:
        at = _spread(addresses, size)
        if (at >= self._bytes.size).any():
            raise WrongAccessError(f"{size} bytes outside of shared memory")
        return at

    def read(self, addresses: Any, size: int, wavefronts: Any) -> Any:
        """Return ``[lanes, size]`` bytes; lanes of these wavefronts read them."""
        at = self._at(addresses, size)
        who = np.broadcast_to(wavefronts[:, None], at.shape)
        writer = self._writer[at]
        if ((writer != -1) & (writer != who)).any():
            raise WrongAccessError("a wavefront reads what another one has just written")
        for wavefront in np.unique(wavefronts):
            mine = at[wavefronts == wavefront]
            before = self._reader[mine]
            self._reader[mine] = np.where((before == -1) | (before == wavefront), wavefront, -2)
        return self._bytes[at]

    def write(self, addresses: Any, data: Any, wavefronts: Any) -> None:
        """Write ``[lanes, size]`` bytes of lanes of these wavefronts."""
        at = self._at(addresses, data.shape[1])
        who = np.broadcast_to(wavefronts[:, None], at.shape)
        for held, what in ((self._reader[at], "read"), (self._writer[at], "written")):
            if ((held != -1) & (held != who)).any():
                raise WrongAccessError(f"a wavefront writes where another one has just {what}")
        self._bytes[at] = data
        self._writer[at] = who
