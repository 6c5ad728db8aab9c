"""What a call allocates and launches, noted while it runs on tensors without data, and done again from the notes."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate, choose, executor, fast, remembered
from rocmend.kernels.common import arrivals
from rocmend.kernels.executor import Launch
from rocmend.kernels.native.called import Called, Setting
from rocmend.kernels.native.packed import replay
from rocmend.kernels.replay import ABSENT, NUMBER, TENSOR, Address, Given, Number, Told, written
from rocmend.kernels.target import Target
from rocmend.kernels.watched import Notes, Unsuited, Varying, Watch

_PLAIN = (torch.Tensor, torch.nn.Parameter)
SMALL_BYTES = 32 << 20
"""Temporary tensors of up to so much share an allocation."""
ALIGNED_BYTES = 256
_one_at_a_time = threading.Lock()


class Slot(NamedTuple):
    """A tensor among the arguments of a launch.

    Args:
        position: Which argument.
        base: In which tensor it lies: those given come first, then those that are made.
        offset: Where in it, in bytes.
        like: A tensor without data of the same type, shape and strides.
    """

    position: int
    base: int
    offset: int
    like: torch.Tensor


class Step(NamedTuple):
    """A launch: the kernel with its constants, its programs, its arguments, and where the tensors among them lie.

    In place of a kernel there may be what a library computes; in place of the call's numbers stand ``Number``.
    """

    bound: fast.Bound | Called
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    slots: tuple[Slot, ...]


def _offset(tensor: torch.Tensor) -> int:
    return int(tensor.storage_offset()) * tensor.element_size()


def record(compute: Callable[[Given], Any], plain: Callable[[Given], Any], told: Given) -> Tape:
    """Record what a call allocates and launches; nothing is computed.

    Args:
        compute: Takes what is given.
        plain: The like, for the record to keep: it takes tensors that the record does not hold for.
        told: Given and None, of which only types, devices, shapes and strides matter, and numbers that change.

    Raises:
        Unsuited: The call does something else too, or launches do not go to a GPU or the interpreter at present.
    """
    tensors = [one for one in told if isinstance(one, torch.Tensor)]
    if not tensors:
        raise Unsuited("it is given no tensor")
    device = tensors[0].device
    if executor.switch.active is not None or choose.observing():
        raise Unsuited("launches go elsewhere, or choices are watched", lasting=False)
    target = executor.target_for(device)
    if target.vendor == "cpu" and not executor.interpreting():
        raise Unsuited("the CPU computes with the reference")
    for one in tensors:
        if one.device != device or type(one) not in _PLAIN or one.is_conj() or one.is_neg():
            raise Unsuited("tensors of several devices, or of a special kind")
    given = tuple([_without_data(one, place) for place, one in enumerate(told)])
    if not _one_at_a_time.acquire(blocking=False):
        raise Unsuited("another thread records", lasting=False)
    try:
        with _aside(target, device) as notes, Watch(given, notes) as watch:
            try:
                result = compute(given)
            except Unsuited:
                raise
            except Exception as error:  # the same call has just computed: whatever this is comes of having no data
                raise Unsuited(f"it needs data: {error}") from error
        return Tape(plain, watch, result, device)
    finally:
        _one_at_a_time.release()


def _without_data(one: Any, place: int) -> Any:
    """Return what stands for a tensor, None or a number while a call is recorded."""
    if isinstance(one, torch.Tensor):
        return torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="meta")
    return None if one is None else Varying(place)


@contextlib.contextmanager
def _aside(target: Target, device: torch.device) -> Iterator[Notes]:
    """Note this thread's launches, with nothing remembered; remember nothing of what happens inside."""
    notes = Notes(target, device)
    with remembered.apart(), choose.apart():
        executor.switch.active = notes
        try:
            yield notes
        finally:
            executor.switch.active = None


class Tape:
    """A recorded call: given tensors like those that it was recorded with, it allocates and launches.

    Args:
        plain: Computes the same, for tensors that lie at odd addresses.
        watch: Knows the memory that was given and allocated, and what was launched.
        result: What was returned.
        device: Of the tensors.

    Raises:
        Unsuited: An argument or a result does not lie in that memory.
    """

    __slots__ = (
        "_index",
        "_kernels",
        "_makes",
        "_plain",
        "_results",
        "_room",
        "_settings",
        "_steps",
        "_type",
        "_zeroed",
        "replay",
    )

    def __init__(
        self,
        plain: Callable[[Given], Any],
        watch: Watch,
        result: Any,
        device: torch.device,
    ) -> None:
        self._plain = plain
        self._index = -1 if device.index is None else device.index
        self._type: Any = type(result) if isinstance(result, tuple) else None
        found = result if isinstance(result, tuple) else (result,)
        places = [_place(one, watch) for one in found]
        steps = [_step(one, watch) for one in watch.notes.launches]
        if len(watch.notes.rooms) > 1:
            raise Unsuited("it asks for room twice")
        shared = [watch.base_of(one) for _, room in watch.notes.rooms for one in room]
        layouts = {index: one for index, one in enumerate(watch.bases) if index >= watch.given and index not in shared}
        layouts |= {place: one for one, place in zip(found, places, strict=True) if place in layouts}
        known = [place for place in places if place is not None]
        if len(known) != len(set(known)):
            raise Unsuited("two results share memory")
        used = sorted(({slot.base for step in steps for slot in step.slots} | set(known)) & set(layouts))
        numbers: dict[int | None, int] = {one: one for one in range(watch.given)}
        pooled, size = _pooled(layouts, [index for index in used if index not in known and index not in watch.zeroed])
        used = [index for index in used if index not in pooled]
        numbers |= {old: watch.given + new for new, old in enumerate([*used, *([None] if pooled else []), *shared])}
        self._makes = [
            allocate.Output(one.shape, one.dtype, device, one.stride())
            for one in (layouts[index] for index in used)
            if one is not None
        ]
        if pooled:
            self._makes.append(allocate.Output((size,), torch.uint8, device))
            numbers |= dict.fromkeys(pooled, numbers[None])
        self._zeroed = [numbers[index] for index in used if index in watch.zeroed]
        self._room = next((functools.partial(arrivals.room, device, *wanted) for wanted, _ in watch.notes.rooms), None)
        self._results = [None if place is None else numbers[place] for place in places]
        self._steps = [
            step._replace(
                slots=tuple(
                    [
                        slot._replace(base=numbers[slot.base], offset=slot.offset + pooled.get(slot.base, 0))
                        for slot in step.slots
                    ]
                )
            )
            for step in steps
        ]
        self._kernels = [step.bound.kernel for step in self._steps]
        calls = [step.bound for step in self._steps if isinstance(step.bound, Called)]
        self._settings = list(dict.fromkeys([setting for one in calls for setting in one.settings]))
        self.replay: Callable[[Given], Any] | None = None
        """What computes as this object does, and faster; once each kernel was launched."""

    def __call__(self, given: Given) -> Any:
        """Compute."""
        return self.carefully(given) if self.replay is None else self.replay(given)

    def carefully(self, given: Given) -> Any:
        """Compute with views of the tensors, as the call itself would, and keep what launches the like."""
        present = [one for one in given if isinstance(one, torch.Tensor)]
        if any(one.data_ptr() & 15 for one in present) or (fast.HIP and any(map(fast.large, present))):
            return self._plain(given)
        if any(found() is not wanted for found, wanted in self._settings):
            return self._plain(given)
        room = () if self._room is None else self._room()
        if room is None:
            return self._plain(given)
        bases = (*given, *[make() for make in self._makes], *room)
        for index in self._zeroed:
            bases[index].zero_()
        entries = []
        for step in self._steps:
            args = [given[arg.place] if isinstance(arg, Number) else arg for arg in step.args]
            for slot in step.slots:
                args[slot.position] = _view(bases[slot.base], slot)
            entries.append(step.bound.launched(step.grid, args))
        if self.replay is None and entries and all(entry is not None for entry in entries):
            launches = [_told(step, entry) for step, entry in zip(self._steps, entries, strict=True) if entry]
            kinds = [ABSENT if one is None else TENSOR if isinstance(one, torch.Tensor) else NUMBER for one in given]
            told = (kinds, launches, self._results, self._type, self)
            self.replay = replay(*told) or written(*told)
        values = [None if one is None else bases[one] for one in self._results]
        if self._type is None:
            return values[0]
        return tuple(values) if self._type is tuple else self._type(*values)

    @property
    def makes(self) -> list[allocate.Output]:
        """What make the tensors that are allocated."""
        return self._makes

    @property
    def zeroed(self) -> list[int]:
        """Which of all tensors are filled with zeros first."""
        return self._zeroed

    @property
    def room(self) -> Callable[[], arrivals.Room | None] | None:
        """What gives the stream's counters and scratch memory, the last of all tensors, where a launch needs them."""
        return self._room

    @property
    def index(self) -> int:
        """The number of the device, or -1."""
        return self._index

    @property
    def kernels(self) -> list[Any]:
        """The kernels, in their order."""
        return self._kernels

    @property
    def settings(self) -> list[Setting]:
        """Functions and what they are to return for the record to hold."""
        return self._settings

    @property
    def plain(self) -> Callable[[Given], Any]:
        """What computes the same, for tensors that lie at odd addresses."""
        return self._plain


def _pooled(layouts: Mapping[int, torch.Tensor | None], temporary: Sequence[int]) -> tuple[dict[int, int], int]:
    """Return where small temporary tensors lie in one that holds them all, and its size: an allocation takes its time.

    Args:
        layouts: Given that are allocated.
        temporary: Those among them that nobody sees.
    """
    places: dict[int, int] = {}
    size = 0
    for index in temporary:
        one = layouts[index]
        needed = 0 if one is None else one.untyped_storage().nbytes()
        if needed <= SMALL_BYTES:
            places[index] = size
            size += -(-needed // ALIGNED_BYTES) * ALIGNED_BYTES
    return (places, size) if len(places) > 1 else ({}, 0)


def _told(step: Step, entry: tuple[Any, ...]) -> Told:
    """Return a launch with its compiled kernel."""
    run, middle, tail, compiled = entry
    x, y, z = (*step.grid, 1, 1)[:3]
    args: list[Any] = [*step.args, *tail]
    for slot in step.slots:
        args[slot.position] = Address(slot.base, slot.offset)
    return Told(run, (x, y, z), middle, tuple(args), compiled)


def _step(launch: Launch, watch: Watch) -> Step:
    slots, args = [], list(launch.args)
    for position, one in enumerate(launch.args):
        if isinstance(one, torch.Tensor):
            slots.append(Slot(position, watch.base_of(one), _offset(one), one))
            args[position] = None
        elif isinstance(one, Varying):
            args[position] = Number(one.place)
    kernel = launch.kernel
    bound = kernel if isinstance(kernel, Called) else fast.bound(kernel, launch.constants, launch.config)
    return Step(bound, launch.grid, tuple(args), tuple(slots))


def _place(result: Any, watch: Watch) -> int | None:
    """Return which tensor a result is; None for None.

    Raises:
        Unsuited: It is no whole tensor.
    """
    if result is None:
        return None
    if not isinstance(result, torch.Tensor):
        raise Unsuited("it returns more than tensors")
    place = watch.base_of(result)
    base = watch.bases[place]
    same = base is not None and (result.dtype, result.shape, result.stride()) == (base.dtype, base.shape, base.stride())
    if place < watch.given:
        if not same or result.storage_offset():
            raise Unsuited("it returns a view of what it is given")
    elif result.numel() and not same:
        reach = 1 + sum((size - 1) * stride for size, stride in zip(result.shape, result.stride(), strict=True))
        if result.storage_offset() or reach * result.element_size() != result.untyped_storage().nbytes():
            raise Unsuited("it returns a part of what it allocates")
    return place


def _view(base: torch.Tensor | None, slot: Slot) -> torch.Tensor:
    """Return the part of a tensor that a launch is given."""
    if base is None:
        raise ValueError(f"expected a tensor for argument {slot.position}, got None.")
    start = (_offset(base) + slot.offset) // slot.like.element_size()
    seen = torch.empty(0, dtype=slot.like.dtype, device=base.device)
    return seen.set_(base.untyped_storage(), start, slot.like.shape, slot.like.stride())
