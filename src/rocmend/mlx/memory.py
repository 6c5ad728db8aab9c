"""How much memory arrays take, and the limits set on it.

On a GPU torch's allocator is asked. On the CPU torch keeps no record: what is in use is counted when it is asked for,
over all tensors that are there, and the peak is the most that was counted, then or after an evaluation. After an
evaluation only values that were asked for are counted, this one's and those of earlier ones that are still held.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import torch

from rocmend.core.host_memory import total_bytes
from rocmend.mlx.device import gpu
from rocmend.mlx.execute import heap
from rocmend.mlx.node import current

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocmend.mlx.device import Device

__all__ = [
    "LIMITS", "active", "buffers", "cached", "cap", "clear", "note", "peak", "reset_peak", "set_limit", "trim",
]  # fmt: skip

# bytes, as set; absent: not set
LIMITS: dict[str, int] = {}

_peak_on_cpu = [0]
# allocations that torch had counted when the peak was reset
_allocations_at_reset: dict[int, int] = {}


def _gpu() -> torch.device | None:
    """Return the GPU that this thread computes on; None: it computes on the CPU."""
    device: Device = current.state.device
    return device.torch if device.type is gpu else None


def buffers(values: Iterable[Any]) -> int:
    """Return the bytes of the buffers behind tensors and tuples of tensors, each counted once."""
    sizes: dict[tuple[str, int], int] = {}
    stack = list(values)
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack += one
        elif isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            sizes[one.device.type, storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def _counted() -> int:
    """Return the bytes of all tensors on the CPU that are there now."""
    # nodes are not asked: the collector of garbage does not know of all of them, but of every tensor
    found = [one for one in gc.get_objects() if type(one) is torch.Tensor and one.device.type == "cpu"]
    total = buffers([*found, *_asked_for.values()])  # what gc.freeze() has hidden from the collector
    _peak_on_cpu[0] = max(_peak_on_cpu[0], total)
    return total


class _Held(weakref.ref[torch.Tensor]):
    """A value that was asked for, by the place of its buffer."""

    __slots__ = ("key", "place")

    key: int
    place: int


class _Ledger:
    """The buffers of values that evaluations were asked for, as long as someone holds them.

    Attributes:
        total: their bytes, each buffer counted once.
    """

    def __init__(self) -> None:
        self.total = 0
        self._values: dict[int, _Held] = {}
        # of each buffer: how many values see it, and its bytes
        self._buffers: dict[int, list[int]] = {}
        # values that are gone: they go at any time, in any thread, so that they are only written down then
        self._gone: deque[_Held] = deque()

    def add(self, values: Iterable[Any]) -> None:
        """Count values: tensors and tuples of tensors. Those that are counted already, and others' devices, are not."""
        while self._gone:
            self._remove(self._gone.popleft())
        stack = list(values)
        while stack:
            one = stack.pop()
            if type(one) is tuple:
                stack += one
            elif one is not None and id(one) not in self._values and one.device.type == "cpu":
                storage = one.untyped_storage()
                held = _Held(one, self._gone.append)
                held.key, held.place = id(one), storage.data_ptr()
                self._values[held.key] = held
                seen = self._buffers.setdefault(held.place, [0, 0])
                if not seen[0]:
                    seen[1] = storage.nbytes()
                    self.total += seen[1]
                seen[0] += 1

    def values(self) -> list[torch.Tensor]:
        """Return the values that are there now."""
        return [value for held in list(self._values.values()) if (value := held()) is not None]

    def _remove(self, held: _Held) -> None:
        if self._values.get(held.key) is held:
            del self._values[held.key]
        seen = self._buffers[held.place]
        seen[0] -= 1
        if not seen[0]:
            self.total -= seen[1]
            del self._buffers[held.place]


_asked_for = _Ledger()


def note(values: Iterable[Any]) -> None:
    """Count values that were computed just now towards the peak on the CPU. One thread at a time may call this."""
    _asked_for.add(values)
    _peak_on_cpu[0] = max(_peak_on_cpu[0], _asked_for.total)


def active() -> int:
    """Return the bytes in use."""
    device = _gpu()
    return _counted() if device is None else int(torch.cuda.memory_allocated(device))


def peak() -> int:
    """Return the most bytes in use since the last reset."""
    device = _gpu()
    if device is None:
        return _peak_on_cpu[0]
    if _allocations_at_reset.get(device.index or 0) == _allocations(device):
        return 0
    return int(torch.cuda.max_memory_allocated(device))


def _allocations(device: torch.device) -> int:
    return int(torch.cuda.memory_stats(device).get("allocation.all.allocated", 0))


def reset_peak() -> None:
    """Forget the peak."""
    _peak_on_cpu[0] = 0
    device = _gpu()
    if device is not None:
        torch.cuda.reset_peak_memory_stats(device)
        _allocations_at_reset[device.index or 0] = _allocations(device)


LITTLE = 1 / 32  # of all memory: what may be given back late
_owing = [False]  # whether some are
_stays = [0]  # bytes that torch held unused when the last were given back: they are captured steps'


def cached() -> int:
    """Return the bytes that torch holds and nobody uses. On the CPU it holds none."""
    device = _gpu()
    if device is None:
        return 0
    if _owing[0]:
        _give_back(device)
    return _unused(device)


def _unused(device: torch.device) -> int:
    return int(torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _give_back(device: torch.device) -> None:
    _owing[0] = False
    torch.cuda.empty_cache()
    _stays[0] = _unused(device)


def clear() -> None:
    """Give back what torch holds and nobody uses, and captured steps that stand on memory nobody holds.

    A program that generates text asks for this after each prompt; giving memory back and asking for it again costs
    milliseconds. A little is therefore given back late: when someone asks how much there is.
    """
    from rocmend.mlx.execute.planner import planner

    planner().trim()
    device = _gpu()
    if device is None:
        heap.trim()
        return
    _owing[0] = True
    if _unused(device) - _stays[0] > LITTLE * total():
        _give_back(device)


def total() -> int:
    """Return the bytes of memory that there are."""
    device = _gpu()
    if device is not None:
        return int(torch.cuda.get_device_properties(device).total_memory)
    return total_bytes()


def set_limit(name: str, limit: int, default: int) -> int:
    """Set a limit in bytes and return the one before.

    Raises:
        ValueError: it is negative.
    """
    if limit < 0:
        raise ValueError(f"[set_{name}_limit] expected a limit of 0 bytes or more, got {limit}.")
    before = LIMITS.get(name, default)
    LIMITS[name] = limit
    return before


def cap(limit: int) -> None:
    """Keep below a limit in bytes: a GPU refuses an allocation beyond it, once unused memory was given back.

    On the CPU it is a guideline, as ``set_memory_limit`` sets it.
    """
    set_limit("memory", limit, total())
    device = _gpu()
    if device is not None:
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total()), device)


def trim() -> None:
    """Give memory back that is held above the limits. Called after evaluations, once a limit is set."""
    device = _gpu()
    if device is None:
        return
    reserved = torch.cuda.memory_reserved(device)
    unused = reserved - torch.cuda.memory_allocated(device)
    if unused and (unused > LIMITS.get("cache", unused) or reserved > LIMITS.get("memory", reserved)):
        torch.cuda.empty_cache()
