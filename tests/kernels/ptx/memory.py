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
        wavefronts: Of the program.
    """

    def __init__(self, size: int, wavefronts: int) -> None:
        self._bytes = np.full(size, POISON, np.uint8)
        # Each wavefront's time goes on when it meets others, and then it knows their times, and what they knew.
        self._time = np.zeros(wavefronts, np.int32)
        self._known = np.full((wavefronts, wavefronts), -1, np.int32)
        np.fill_diagonal(self._known, np.iinfo(np.int32).max)
        # By byte: who wrote it last (or nobody, -1) and when, and when each wavefront read it last, or joined with it.
        self._writer, self._written = np.full(size, -1, np.int16), np.zeros(size, np.int32)
        self._read = np.full((wavefronts, size), -1, np.int32)
        self._joined = np.full((wavefronts, size), -1, np.int32)

    def meet(self, who: list[int]) -> None:
        """These wavefronts have met: what each did, and knew of others, is known to all of them."""
        together = self._known[who].max(0)
        together[who] = self._time[who]
        self._known[who] = together
        self._known[who, who] = np.iinfo(np.int32).max
        self._time[who] += 1

    def _at(self, addresses: Any, size: int) -> Any:
        at = _spread(addresses, size)
        if (at >= self._bytes.size).any():
            raise WrongAccessError(f"{size} bytes outside of shared memory")
        return at

    def _check_written(self, at: Any, wavefront: int, what: str, *, joins: bool = False) -> None:
        writer = self._writer[at]
        unknown = (writer >= 0) & (self._written[at] > self._known[wavefront, writer])
        if unknown.any() or (not joins and self._others(self._joined, at, wavefront)):
            raise WrongAccessError(f"a wavefront {what} another one has just written")

    def _others(self, times: Any, at: Any, wavefront: int) -> bool:
        """Return whether other wavefronts did something to bytes that this one does not know of."""
        known = self._known[wavefront].reshape(-1, *[1] * at.ndim)
        return bool((times[:, at] > known).any())

    def read(self, addresses: Any, size: int, wavefront: int) -> Any:
        """Return ``[lanes, size]`` bytes that a wavefront reads."""
        at = self._at(addresses, size)
        self._check_written(at, wavefront, "reads what")
        self._read[wavefront, at] = self._time[wavefront]
        return self._bytes[at]

    def write(self, addresses: Any, data: Any, wavefront: int) -> None:
        """Write ``[lanes, size]`` bytes of a wavefront."""
        at = self._at(addresses, data.shape[1])
        # Wavefronts that have the same numbers may all write them: what is there already is not written again.
        other = self._bytes[at] != data
        at, data = at[other], data[other]
        self._check_written(at, wavefront, "writes where")
        if self._others(self._read, at, wavefront):
            raise WrongAccessError("a wavefront writes where another one has just read")
        self._bytes[at] = data
        self._writer[at], self._written[at] = wavefront, self._time[wavefront]

    def join_most(self, addresses: Any, numbers: Any, wavefront: int) -> None:
        """Keep the larger of words that are there and a wavefront's, which others may do at the same time."""
        at = self._at(addresses, 4)
        self._check_written(at, wavefront, "joins what", joins=True)
        if self._others(self._read, at, wavefront):
            raise WrongAccessError("a wavefront writes where another one has just read")
        np.maximum.at(self._bytes.view(np.uint32), at[:, 0] // 4, numbers)
        self._joined[wavefront, at] = self._time[wavefront]
