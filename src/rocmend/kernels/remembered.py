"""What is remembered from call to call, in one place: bounded, and dropped whenever a decision may have changed.

``Remembered`` holds how a call is carried out, by all that the decision depends on. Preferences, executors, tuning
records and Triton's settings are in no key: who changes one calls ``forget``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import torch

MOST = 4096
"""Entries of one op; shapes that change from call to call must not grow the process."""

Value = TypeVar("Value")
_all: list[Remembered[Any]] = []


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
    for one in _all:
        one.clear()
