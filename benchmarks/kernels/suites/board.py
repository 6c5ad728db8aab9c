"""Which case is run next, and where: the longest first, kernels that are alike by one process, memory that suffices."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Any

import torch
from benchmarks.kernels.suites.outcomes import Cost

from rocmend.kernels import registry
from rocmend.kernels.op import resolve
from rocmend.kernels.suite.case import Maker

GROUP_S, GROUP_MOST = 6.0, 20
"""Seconds and cases of a group: neighbours in a suite, which share kernels, are run by one process."""
ALONE_S, ALONE_GIB = 6.0, 16.0
"""From these on a case is a group of its own."""
MOST_GIB = 100.0
"""A case may ask for no more: it then has a GPU nearly to itself."""
SMALL_GIB = 0.3


@dataclass(slots=True)
class Item:
    """A case that is to be run.

    Args:
        op: Its op.
        case: Its name.
        size: ``tiny``, ``small`` or ``large``.
        seconds: What it is likely to take.
        gib: Memory of the GPU that it is likely to need.
        group: Cases that one process runs one after the other.
        again: It ran out of memory beside others, and is to be run alone.
    """

    op: str
    case: str
    size: str
    seconds: float
    gib: float
    group: int = -1
    again: bool = False


def items(ops: Sequence[str], sizes: Sequence[str], costs: Mapping[tuple[str, str], Cost]) -> list[Item]:
    """Return all cases of ops with what they are likely to take, by earlier runs where there were any."""
    found = []
    for op in ops:
        for case in resolve(registry.get(op).cases)():
            if case.size not in sizes:
                continue
            known = costs.get((op, case.name), Cost(2.0 if case.size == "large" else 0.6, None))
            gib = SMALL_GIB if case.size != "large" else known.gib
            found.append(Item(op, case.name, case.size, known.seconds, _need(case) if gib is None else gib))
    return grouped(found)


def _need(case: Any) -> float:
    """Return GiB that a case is likely to need: its arguments again in float64, and as much several times more."""
    try:
        call = case.make(Maker(torch.device("meta"), 0))
    except Exception:  # noqa: BLE001  a case that cannot be made without data
        return 4.0
    size = sum(_bytes(value) for value in (*call.args, *call.kwargs.values())) / 2**30
    return min(MOST_GIB, max(SMALL_GIB, 8 * size) + SMALL_GIB)


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel() * (8 if value.dtype.is_floating_point else value.element_size())
    return sum(_bytes(one) for one in value) if isinstance(value, (tuple, list)) else 0


def grouped(found: Sequence[Item]) -> list[Item]:
    """Give each item its group; return them as they are to be begun: what takes long or much memory first."""
    group, spent, count, before = -1, 0.0, 0, ("", "")
    for item in found:
        alone = item.seconds >= ALONE_S or item.gib >= ALONE_GIB
        here = (item.op, "large" if item.size == "large" else "")
        if alone or here != before or spent + item.seconds > GROUP_S or count >= GROUP_MOST:
            group, spent, count = group + 1, 0.0, 0
        item.group, before = group, ("", "") if alone else here
        spent, count = spent + item.seconds, count + 1
    rank: dict[int, tuple[bool, float, bool, float]] = {}
    chance = random.Random(0)  # noqa: S311  it keeps groups of an op, which compile the same, apart
    for item in found:
        much, longest, large, order = rank.get(item.group, (False, 0.0, False, chance.random()))
        longest = item.seconds if item.seconds >= ALONE_S else longest
        rank[item.group] = (much or item.gib >= ALONE_GIB, longest, large or item.size == "large", order)
    return sorted(found, key=lambda one: rank[one.group], reverse=True)


class Board:
    """Hands out cases to the threads that drive processes.

    Args:
        waiting: The cases, as ``grouped`` sorts them.
        end: When nothing more is begun, by the monotonic clock.
    """

    def __init__(self, waiting: Sequence[Item], end: float) -> None:
        self.waiting = list(waiting)
        self.end = end
        self.running = 0
        self.room: dict[str, float] = {}
        self.held: dict[str, float] = {}
        self.held_by_small: dict[str, float] = {}
        self.begun = set[int]()
        self.changed = Condition()

    def opened(self, gpu: str, gib: float) -> None:
        """Say how much memory cases may take together on a GPU; what was said first counts."""
        with self.changed:
            if gpu not in self.room:
                self.room[gpu], self.held[gpu], self.held_by_small[gpu] = gib, 0.0, 0.0
            self.changed.notify_all()

    def _takes(self, item: Item, gpu: str) -> bool:
        """Return whether a case may run on a GPU: one that needs more than there is, where there is most."""
        room = self.room[gpu]
        return room == max(self.room.values()) or (not item.again and item.gib <= room)

    def take(self, gpu: str, group: int) -> Item | None:
        """Return the next case for a process that last ran one of a group; None where all are done or time is up."""
        with self.changed:
            while True:
                if time.monotonic() >= self.end or not (self.waiting or self.running):
                    self.changed.notify_all()
                    return None
                item = self._next(gpu, group)
                if item is not None:
                    self.waiting.remove(item)
                    self.begun.add(item.group)
                    self._hold(item, gpu, 1)
                    self.running += 1
                    return item
                self.changed.wait(1.0)

    def done(self, gpu: str, item: Item, *, again: bool = False) -> None:
        """Say that a case has ended; ``again``: it is to be run once more, alone."""
        with self.changed:
            self._hold(item, gpu, -1)
            self.running -= 1
            if again:
                item.again = True
                self.waiting.insert(0, item)
            self.changed.notify_all()

    def _asked(self, item: Item, gpu: str) -> float:
        return self.room[gpu] if item.again else min(item.gib, self.room[gpu])

    def _hold(self, item: Item, gpu: str, sign: int) -> None:
        self.held[gpu] += sign * self._asked(item, gpu)
        if not _is_big(item):
            self.held_by_small[gpu] += sign * self._asked(item, gpu)

    def _next(self, gpu: str, group: int) -> Item | None:
        # A case that needs much would wait for ever if others took whatever comes free.
        here = [item for item in self.waiting if self._takes(item, gpu)]
        kept = max((self._asked(item, gpu) for item in here if _is_big(item)), default=0.0)
        free = self.room[gpu] - self.held[gpu]
        for_small = min(free, self.room[gpu] - kept - self.held_by_small[gpu])
        fits = [item for item in here if self._asked(item, gpu) <= (free if _is_big(item) else for_small)]
        own = next((item for item in fits if item.group == group), None)
        if own is not None:
            return own
        fresh = next((item for item in fits if item.group not in self.begun), None)
        if fresh is not None:
            return fresh
        # All groups are begun: take the last case of the one that has most left.
        left: dict[int, float] = {}
        for item in fits:
            left[item.group] = left.get(item.group, 0.0) + item.seconds
        most = max(left, key=lambda one: left[one], default=None)
        return next((item for item in reversed(fits) if item.group == most), None)


def _is_big(item: Item) -> bool:
    return item.again or item.gib >= ALONE_GIB
