"""What is remembered from call to call, in one place: bounded, and dropped whenever a decision may have changed.

``Remembered`` holds how a call is carried out, by all that the decision depends on. Preferences, executors, tuning
records and Triton's settings are in no key: who changes one calls ``forget``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import torch

MOST = 4096
"""Entries of one op; shapes that change from call to call must not grow the process."""

MOST_RECENT = 4
"""Kinds of calls of the same options and first shape that torch compares with."""

Value = TypeVar("Value")
Recent = tuple[int, Callable[..., bool], Value]
"""Which tensors are there, what compares others with them, and what is remembered."""
_all: list[Remembered[Any]] = []
_times = 0


class Remembered(dict[Any, Value], Generic[Value]):
    """A dictionary that ``forget`` empties; ``keep`` bounds it."""

    def __init__(self) -> None:
        super().__init__()
        _all.append(self)

    def keep(self, key: Any, value: Value) -> Value:
        """Remember a value and return it."""
        if len(self) >= MOST:
            self.clear()
        self[key] = value
        return value


class Calls(Generic[Value]):
    """What is remembered of calls, by their tensors and options.

    Tensors are told apart by type, device, shape and strides. Torch compares all of them with what was there before in
    one go, where it can; else, and where that differs, they are looked up by a key of these.
    """

    def __init__(self) -> None:
        self._kept: Remembered[Value] = Remembered()
        self.recent: Remembered[tuple[Recent[Value], ...]] = Remembered()
        """By options and the first tensor's shape, what torch compares with; empty where it cannot."""

    def get(self, tensors: Sequence[torch.Tensor | None], options: Any) -> Value | None:
        """Return what is remembered of a call, or None.

        Args:
            tensors: Of the call; not all are None.
            options: Hashable.
        """
        items = [one for one in tensors if one is not None]
        brief = (options, items[0].shape)
        there = (2 << len(items)) - 1 if len(items) == len(tensors) else _there(tensors)
        recent = self.recent.get(brief)
        if recent is not None:
            for pattern, alike, value in recent:
                if pattern == there and alike(*items):
                    return value
        found = self._kept.get((options, *[None if one is None else of(one) for one in tensors]))
        if found is not None:
            check = _check_of(items) if recent is None or 0 < len(recent) < MOST_RECENT else None
            if check is not None:
                self.recent.keep(brief, (*(recent or ()), (there, check, found)))
            elif recent is None:
                self.recent.keep(brief, ())  # not to be asked again
        return found

    def keep(self, tensors: Sequence[torch.Tensor | None], options: Any, value: Value) -> Value:
        """Remember what a call's like is carried out with, and return it."""
        some: Any = next(one for one in tensors if one is not None)
        self.recent.pop((options, some.shape), None)
        return self._kept.keep((options, *[None if one is None else of(one) for one in tensors]), value)


def _there(tensors: Sequence[torch.Tensor | None]) -> int:
    """Return which tensors are there: a bit for each, the lowest for the first, and one above them all."""
    return sum([1 << place for place, one in enumerate(tensors) if one is not None], 1 << len(tensors))


@functools.cache
def _guards() -> Any:
    """Return torch's own comparison of tensors with earlier ones, or None where it does not see all that matters."""
    import torch

    try:
        from torch._C._dynamo.guards import TensorGuards

        one = torch.empty(2, 2)
        guards: Any = TensorGuards
        check = guards(one, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
        others = (
            torch.empty(2, 3), torch.empty(2, 2).t(), torch.empty(2), torch.empty(2, 2, dtype=torch.float64),
            torch.empty(2, 2, dtype=torch.int32), torch.empty(2, 2, device="meta"), torch.empty(3, 2)[::2],
        )  # fmt: skip
        works = check(torch.empty(2, 2)) is True and not any(map(check, others))
    except (ImportError, TypeError, RuntimeError):
        return None
    return guards if works else None


def _check_of(tensors: Sequence[torch.Tensor]) -> Callable[..., bool] | None:
    """Return what compares tensors with these: types, devices, shapes and strides; None where torch does not do so.

    It takes no tensor for two of them.
    """
    guards = _guards()
    if guards is None:
        return None
    check: Callable[..., bool] = guards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    return check if check(*tensors) else None


class Planned:
    """An implementation that decides first and computes then: made by decorating the function that decides.

    That function takes the op's arguments and returns what computes calls with arguments like them: all the same but
    for tensors' elements and addresses.
    """

    def __init__(self, plan: Callable[..., Callable[..., Any]]) -> None:
        functools.update_wrapper(self, plan)
        self.plan = plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Decide and compute."""
        return self.plan(*args, **kwargs)(*args, **kwargs)


def planned(run: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return what computes calls with arguments like these: the implementation itself where it plans nothing."""
    return run.plan(*args, **kwargs) if isinstance(run, Planned) else run


def of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return the part of a key that a tensor makes: all but its elements and its address."""
    return tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def forget() -> None:
    """Drop all of it."""
    global _times  # noqa: PLW0603  one count for the process
    _times += 1
    for one in _all:
        one.clear()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Begin with nothing remembered, and forget what is decided inside: it holds for tensors without data alone.

    What was remembered before is so again behind it, unless ``forget`` was called meanwhile.
    """
    kept, then = [(one, dict(one)) for one in _all], times_forgotten()
    for one in _all:
        one.clear()
    try:
        yield
    finally:
        same = then == times_forgotten()
        for one, before in kept:
            one.clear()
            if same:
                one.update(before)


def times_forgotten() -> int:
    """Return how often ``forget`` was called."""
    return _times
