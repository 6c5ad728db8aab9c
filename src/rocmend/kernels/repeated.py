"""Calls that are made again and again: recorded once, launched from the record from then on.

The first calls of a kind run as they are written: recording takes as long as some tens of calls, and many shapes come
but a few times. Then the same code is run with tensors that have no data, and what it allocates and launches is noted;
each later call does only what was noted. Code that reads memory, computes with torch, or hands out a view of what it
was given is noticed, and left as it is.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from rocmend.kernels import executor, native
from rocmend.kernels.opaque import opaque
from rocmend.kernels.remembered import Calls

Tensors = Sequence[torch.Tensor | None]
Given = Sequence[Any]
"""Tensors, and numbers behind them."""
PLAIN_CALLS = 32
"""Calls of a kind before one is recorded; in Triton's interpreter one, so that what is tested is what is used."""
_GRADIENT = object()
_at_once = False


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Record the second call of a kind inside, so that the third is launched from the record: for tests on a GPU."""
    global _at_once  # noqa: PLW0603  one switch for the process
    before, _at_once = _at_once, True
    try:
        yield
    finally:
        _at_once = before


class Repeated:
    """A function of tensors and options that is recorded: made by decorating it.

    It is called with the tensors as one tuple and the options behind it, and calls the decorated function with all of
    them one by one; the first tensor is no None. Options must be hashable, and alike where they are equal: what tells
    0.0 from -0.0, or 1 from 1.0, is to be brought into one form before. Calls that need a gradient are not recorded.

    Args:
        compute: The function: it may allocate with ``allocate``, launch with ``launch`` or a ``Plan``, and view.
    """

    plain_calls = PLAIN_CALLS

    def __init__(self, compute: Callable[..., Any]) -> None:
        functools.update_wrapper(self, compute)
        self._compute = compute
        self.calls: Calls[Callable[[Given], Any]] = Calls()
        self._find: Callable[..., Any] = self._found

    @opaque
    def __call__(self, tensors: Tensors, *options: Any) -> Any:
        """Compute."""
        return self._find(tensors, options)

    def _found(self, tensors: Tensors, options: tuple[Any, ...], numbers: tuple[int, ...] = ()) -> Any:
        """Compute with what is remembered of the like, or as the first of its kind."""
        kind: Any = options
        if torch.is_grad_enabled():
            for one in tensors:
                if one is not None and one.requires_grad:
                    kind = (options, _GRADIENT)
        call = self.calls.get(tensors, kind)
        given = (*tensors, *numbers) if numbers else tensors
        return self._first(tensors, options, kind, given) if call is None else call(given)

    def _first(self, tensors: Tensors, options: tuple[Any, ...], kind: Any, given: Given) -> Any:
        """Compute the first of its kind, and remember it once it went well: errors are told again."""
        first = _First(self, options, kind, len(tensors))
        result = first.plain(given)
        self.calls.keep(tensors, kind, first if kind is options else first.plain)
        return result

    def hasten(self) -> None:
        """Find what is remembered in C from now on, where there is a compiler."""
        built = native.module()
        if built is not None:
            self._find = built.Memo(self.calls.recent, self._found, torch.is_grad_enabled)

    def planned(self, _given: Given, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what computes calls of tensors, one by one, like these."""
        compute = self._compute
        return lambda *tensors: compute(*tensors, *options)


class RepeatedPlan(Repeated):
    """The same of a function that decides first: it returns what computes calls of tensors like those it was given."""

    plain_calls = 4 * PLAIN_CALLS  # they cost less

    def planned(self, given: Given, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what computes calls of tensors, one by one, like these."""
        call: Callable[..., Any] = self._compute(*given, *options)
        return call


class NumberedPlan(RepeatedPlan):
    """The same with numbers that are others from call to call, such as a place in a sequence.

    It is called with the tensors, the numbers and the options; the decorated function, and what that returns, get the
    numbers behind the tensors. They may do nothing with them but to hand them to a launch: what is recorded would hold
    for one number alone, and so any other use leaves the calls unrecorded.
    """

    @opaque
    def __call__(self, tensors: Tensors, numbers: tuple[int, ...], *options: Any) -> Any:
        """Compute."""
        return self._find(tensors, (options, *map(_kind_of, numbers)), numbers)

    def planned(self, given: Given, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what computes calls of tensors and numbers, one by one, like these."""
        return super().planned(given, options[0])


def _kind_of(number: int) -> int:
    """Return what Triton compiles different kernels for: one, multiples of 16, and more than 32 bits."""
    return (number == 1) | (not number & 15) << 1 | (not -(1 << 31) <= number < 1 << 31) << 2 | (number >= 1 << 63) << 3


class _First:
    """Calls of one kind before they are recorded, and those that cannot be.

    Args:
        repeated: Whose calls they are.
        options: Of the calls.
        kind: By what they are remembered beside their tensors.
        count: How many tensors they are given; behind these stand numbers.
    """

    __slots__ = ("_call", "_count", "_kind", "_left", "_options", "_repeated")

    def __init__(self, repeated: Repeated, options: tuple[Any, ...], kind: Any, count: int) -> None:
        self._repeated, self._options, self._kind, self._count = repeated, options, kind, count
        self._call: Callable[..., Any] | None = None
        self._left = 0 if _at_once or executor.interpreting() else repeated.plain_calls

    def __call__(self, given: Given) -> Any:
        """Compute as it is written; in the end from a record, if there can be one."""
        if self._left:
            self._left -= 1
            return self.plain(given)
        from rocmend.kernels.tape import record
        from rocmend.kernels.watched import Unsuited

        tensors: Any = given[: self._count]
        try:
            tape = record(self._afresh, self.plain, given)
        except Unsuited as reason:
            if reason.lasting:
                self._repeated.calls.keep(tensors, self._kind, self.plain)
                self._repeated.hasten()
            return self.plain(given)
        result = tape(given)
        self._repeated.calls.keep(tensors, self._kind, tape.replay or tape)
        self._repeated.hasten()
        return result

    def plain(self, given: Given) -> Any:
        """Compute as it is written."""
        if self._call is None:
            self._call = self._repeated.planned(given, self._options)
        return self._call(*given)

    def _afresh(self, given: Given) -> Any:
        """Compute with nothing decided yet."""
        return self._repeated.planned(given, self._options)(*given)
