"""A recorded call as one Python function, made for it: no loop, no look-up, each number in its place.

A call of a decode step should cost a few microseconds, of which a loop over launches and their arguments would take
one or two. The function's source holds names and integers alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from rocmend.kernels import allocate, fast

Given = Sequence[Any]
"""Given, None, and numbers behind them."""
ABSENT, TENSOR, NUMBER = range(3)
"""What stands in a place of those given."""


class Address(NamedTuple):
    """An argument that is the address of a tensor.

    Args:
        base: Which: those given come first, then those that are made.
        offset: In bytes from its beginning.
    """

    base: int
    offset: int


class Number(NamedTuple):
    """An argument that is a number of the call.

    Args:
        place: Which of those given.
    """

    place: int


class Told(NamedTuple):
    """A launch with its compiled kernel.

    Args:
        run: What launches.
        grid: Programs.
        middle: What it takes behind the stream.
        args: What it takes then: addresses, numbers (the call's or its own), None and constants.
        compiled: The compiled kernel.
    """

    run: Callable[..., Any]
    grid: tuple[int, int, int]
    middle: tuple[Any, ...]
    args: tuple[Any, ...]
    compiled: Any


class Careful(Protocol):
    """Computes the same in a way that always works."""

    @property
    def index(self) -> int:
        """The number of the device, or -1."""

    @property
    def kernels(self) -> list[Any]:
        """The kernels that are launched."""

    @property
    def settings(self) -> Sequence[tuple[Callable[[], bool], bool]]:
        """Functions and what they are to return for the record to hold."""

    @property
    def plain(self) -> Callable[[Given], Any]:
        """Computes with tensors that lie at odd addresses."""

    @property
    def makes(self) -> list[allocate.Output]:
        """What make the tensors that are allocated."""

    @property
    def zeroed(self) -> list[int]:
        """Which of all tensors are filled with zeros first."""

    @property
    def room(self) -> Callable[[], Sequence[torch.Tensor] | None] | None:
        """What gives the last two of all tensors, counters and scratch memory, or None; None where there are none."""

    def carefully(self, given: Given) -> Any:
        """Compute where somebody is told of launches, or the device is not the current one."""


def written(
    given: Sequence[int],
    launches: Sequence[Told],
    results: Sequence[int | None],
    kind: Any,
    other: Careful,
) -> Callable[[Given], Any]:
    """Return a function of the tensors that allocates, launches and returns.

    Args:
        given: For each place of what is given: ABSENT, TENSOR or NUMBER.
        launches: In their order.
        results: Which tensors are returned.
        kind: Type of the tuple that is returned, or None for a single tensor.
        other: Says what is allocated, and computes what the function does not.
    """
    values: dict[str, Any] = {
        "allocate": allocate, "runtime": fast.runtime, "current_device": fast.current_device,
        "stream_of": fast.stream_of, "plain": other.plain, "carefully": other.carefully, "large": fast.large,
        "hooked": fast.hooked,
    }  # fmt: skip
    names = (f"v{number}" for number in itertools.count())

    def told(value: Any) -> str:
        """Return a value as source: an integer or None itself, anything else a name."""
        if value is None or type(value) is int:
            return repr(value)
        name = next(names)
        values[name] = value
        return name

    def address(one: Address) -> str:
        base = f"a{one.base}" if one.base < len(given) else f"t{one.base}.data_ptr()"
        return f"{base} + {one.offset}" if one.offset else base

    def argument(one: Any) -> str:
        if isinstance(one, Number):
            return f"t{one.place}"
        return address(one) if isinstance(one, Address) else told(one)

    here = [index for index, kind in enumerate(given) if kind == TENSOR]
    low = " | ".join(f"a{index}" for index in here)
    elsewhere = [f"current_device() != {other.index}", "allocate.poisons()"]
    elsewhere += [f"{told(kernel)}.pre_run_hooks" for kernel in dict.fromkeys(other.kernels)]
    elsewhere += [f"{told(found)}() is not {wanted}" for found, wanted in other.settings]
    lines = [
        f"{', '.join(f't{index}' for index in range(len(given)))}, = given",
        *[f"a{index} = t{index}.data_ptr()" for index in here],
        f"if ({low}) & 15{' or any(map(large, given))' if fast.HIP else ''}:",
        "    return plain(given)",
        "try:",
        "    hooks = runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls",
        "except AttributeError:",  # None, or a plain function
        "    hooks = hooked()",
        f"if hooks or {' or '.join(elsewhere)}:",
        "    return carefully(given)",
        *_room(other, len(given), told),
        *[f"t{number} = {told(make.quick)}({', '.join(map(told, make.quick_args))})"
          for number, make in enumerate(other.makes, len(given))],
        *[f"t{number}.zero_()" for number in other.zeroed],
        f"stream = stream_of({other.index})",
    ]  # fmt: skip
    for one in launches:
        args = [*map(told, one.grid), "stream", *map(told, one.middle)]
        args += map(argument, one.args)
        lines.append(f"{told(one.run)}({', '.join(args)})")
    found = ["None" if one is None else f"t{one}" for one in results]
    if kind is None:
        lines.append(f"return {found[0]}")
    else:
        lines.append(f"return ({', '.join(found)},)" if kind is tuple else f"return {told(kind)}({', '.join(found)})")
    source = "def replay(given):\n" + "\n".join(f"    {line}" for line in lines)
    exec(compile(source, "<a recorded call>", "exec"), values)  # noqa: S102  its source is made of names and integers
    replay: Callable[[Given], Any] = values["replay"]
    return replay


def _room(other: Careful, given: int, told: Callable[[Any], str]) -> list[str]:
    """Return the lines that get counters and scratch memory."""
    if other.room is None:
        return []
    first = given + len(other.makes)
    return [
        f"room = {told(other.room)}()",
        "if room is None:",
        "    return plain(given)",
        f"t{first}, t{first + 1} = room",
    ]
