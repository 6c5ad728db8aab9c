"""The plan cache: calls that recur are captured once and replayed from then on.

The first calls of a kind run normally: a capture takes as long as some tens of calls, and many shapes occur only a few
times. Then the same code runs with tensors that have no data (``capture.py``), and its allocations and launches are
replayed for all later calls of that kind (``replay.py``). Code that reads memory, computes with torch, or returns a
part of a tensor is detected and always runs normally.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from rocmend.kernels import executor
from rocmend.kernels.caches import Cache
from rocmend.kernels.opaque import opaque

if TYPE_CHECKING:
    from rocmend.kernels.capture import Arguments

Tensors = Sequence[torch.Tensor | None]
LOG = logging.getLogger("rocmend.kernels")
VARIABLE = "ROCMEND_KERNELS_CAPTURE_AFTER"
_DEFAULT_CAPTURE_AFTER = 32


class _Settings:
    """How many calls of a kind run normally before a call is captured, at least 1."""

    def __init__(self) -> None:
        self.capture_after = _DEFAULT_CAPTURE_AFTER
        value = os.environ.get(VARIABLE, "")
        if value.isdecimal():
            self.capture_after = max(1, int(value))
        elif value:
            LOG.warning("expected a number in %s, got %r: %d is used.", VARIABLE, value, self.capture_after)


_settings = _Settings()


@contextlib.contextmanager
def capture_after(calls: int) -> Iterator[None]:
    """Capture new kinds of calls inside after so many normal calls."""
    before, _settings.capture_after = _settings.capture_after, calls
    try:
        yield
    finally:
        _settings.capture_after = before


class cached:  # noqa: N801  a decorator
    """A function of tensors and options whose calls are captured and replayed: made by decorating it.

    It is called with the tensors as one tuple, followed by the options, and calls the decorated function with all of
    them one by one; the first tensor must not be None. Options must be hashable, and equal options must mean the same:
    convert what distinguishes 0.0 from -0.0, or 1 from 1.0, first. Calls that need a gradient are not captured.

    ``numbers`` vary from call to call, such as a position in a sequence. The function gets them after the tensors. It
    may only pass them on to a launch: a capture would hold for one number alone, and so any other use leaves the calls
    uncaptured.

    The cache key holds the options; type, device, shape and strides of each tensor; and what Triton specializes
    numbers on.

    Args:
        function: Computes; it may allocate with ``allocate``, launch with ``launch`` or a ``LaunchPlan``, and view.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.calls: Cache[Callable[[Arguments], Any]] = Cache()

    @opaque
    def __call__(self, tensors: Tensors, *options: Any, numbers: tuple[int, ...] = ()) -> Any:
        """Compute."""
        key: Any = (
            options,
            *[None if t is None else (t.dtype, t.device, t.shape, t.stride()) for t in tensors],
        )
        arguments: Arguments = tensors
        if numbers:
            key = (*key, *map(_specialization, numbers))
            arguments = (*tensors, *numbers)
        if torch.is_grad_enabled():
            for tensor in tensors:
                if tensor is not None and tensor.requires_grad:
                    return self.plan(arguments, options)(*arguments)
        call = self.calls.get(key)
        if call is not None:
            return call(arguments)
        first = _Uncaptured(self, key, options)
        result = first(arguments)  # errors are raised again at the next call
        self.calls.keep(key, first)
        return result

    def plan(self, _arguments: Arguments, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return a function that computes calls with arguments like these, given one by one."""
        function = self.function
        return lambda *arguments: function(*arguments, *options)


class cached_plan(cached):  # noqa: N801  a decorator
    """The same for a function that plans: it returns a function that computes calls with tensors like those it got.

    That function gets the tensors and the numbers, and is kept while calls run normally.
    """

    def plan(self, arguments: Arguments, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return a function that computes calls with arguments like these, given one by one."""
        call: Callable[..., Any] = self.function(*arguments, *options)
        return call


def _specialization(number: int) -> int:
    """Return Triton's specialization of an integer: 1, multiples of 16, and more than 32 bits."""
    return (number == 1) | (not number & 15) << 1 | (not -(1 << 31) <= number < 1 << 31) << 2 | (number >= 1 << 63) << 3


class Planner:
    """An implementation that plans first and then computes: made by decorating the function that plans.

    That function takes the op's arguments and returns a function that computes calls with arguments like them: all the
    same but for tensors' elements and addresses.
    """

    def __init__(self, plan: Callable[..., Callable[..., Any]]) -> None:
        functools.update_wrapper(self, plan)
        self.plan = plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Plan and compute."""
        return self.plan(*args, **kwargs)(*args, **kwargs)


def plan_of(run: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return a function for calls with arguments like these: the implementation itself if it plans nothing."""
    return run.plan(*args, **kwargs) if isinstance(run, Planner) else run


class _Uncaptured:
    """Calls of one kind before they are captured, and those that cannot be.

    Args:
        function: The decorated function.
        key: Of the calls.
        options: Of the calls.
    """

    __slots__ = ("_call", "_function", "_key", "_options", "_remaining")

    def __init__(self, function: cached, key: Any, options: tuple[Any, ...]) -> None:
        self._function, self._key, self._options = function, key, options
        self._call: Callable[..., Any] | None = None
        self._remaining: int = _settings.capture_after

    def __call__(self, arguments: Arguments) -> Any:
        """Compute normally; in the end by a capture, if the call can be captured."""
        if self._remaining:
            self._remaining -= 1
            return self.compute(arguments)
        calls = self._function.calls
        if not executor.has_triton():  # torch computes
            calls.keep(self._key, self.compute)
            return self.compute(arguments)
        from rocmend.kernels.capture import NotCapturableError, capture
        from rocmend.kernels.replay import Replay

        try:
            replay = Replay(capture(self._compute_anew, arguments), self.compute)
        except NotCapturableError as reason:
            if reason.lasting:
                calls.keep(self._key, self.compute)
            return self.compute(arguments)
        result = replay(arguments)
        calls.keep(self._key, replay.generated or replay)
        return result

    def compute(self, arguments: Arguments) -> Any:
        """Compute normally."""
        if self._call is None:
            self._call = self._function.plan(arguments, self._options)
        return self._call(*arguments)

    def _compute_anew(self, arguments: Arguments) -> Any:
        """Compute with nothing planned yet."""
        return self._function.plan(arguments, self._options)(*arguments)
