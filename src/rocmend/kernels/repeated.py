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

from rocmend.kernels import executor
from rocmend.kernels.opaque import opaque
from rocmend.kernels.remembered import Calls

Tensors = Sequence[torch.Tensor | None]
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
        self.calls: Calls[Callable[[Tensors], Any]] = Calls()

    @opaque
    def __call__(self, tensors: Tensors, *options: Any) -> Any:
        """Compute."""
        kind: Any = options
        if torch.is_grad_enabled():
            for one in tensors:
                if one is not None and one.requires_grad:
                    kind = (options, _GRADIENT)
        call = self.calls.get(tensors, kind)
        return self._first(tensors, options, kind) if call is None else call(tensors)

    def _first(self, tensors: Tensors, options: tuple[Any, ...], kind: Any) -> Any:
        """Compute the first of its kind, and remember it once it went well: errors are told again."""
        first = _First(self, options, kind)
        result = first.plain(tensors)
        self.calls.keep(tensors, kind, first if kind is options else first.plain)
        return result

    def planned(self, _tensors: Tensors, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what computes calls of tensors, one by one, like these."""
        compute = self._compute
        return lambda *tensors: compute(*tensors, *options)


class RepeatedPlan(Repeated):
    """The same of a function that decides first: it returns what computes calls of tensors like those it was given."""

    plain_calls = 4 * PLAIN_CALLS  # they cost less

    def planned(self, tensors: Tensors, options: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what computes calls of tensors, one by one, like these."""
        call: Callable[..., Any] = self._compute(*tensors, *options)
        return call


class _First:
    """Calls of one kind before they are recorded, and those that cannot be.

    Args:
        repeated: Whose calls they are.
        options: Of the calls.
        kind: By what they are remembered beside their tensors.
    """

    __slots__ = ("_call", "_kind", "_left", "_options", "_repeated")

    def __init__(self, repeated: Repeated, options: tuple[Any, ...], kind: Any) -> None:
        self._repeated, self._options, self._kind = repeated, options, kind
        self._call: Callable[..., Any] | None = None
        self._left = 0 if _at_once or executor.interpreting() else repeated.plain_calls

    def __call__(self, tensors: Tensors) -> Any:
        """Compute as it is written; in the end from a record, if there can be one."""
        if self._left:
            self._left -= 1
            return self.plain(tensors)
        from rocmend.kernels.tape import Unsuited, record

        try:
            tape = record(self._afresh, self.plain, tensors)
        except Unsuited as reason:
            if reason.lasting:
                self._repeated.calls.keep(tensors, self._kind, self.plain)
            return self.plain(tensors)
        result = tape(tensors)
        self._repeated.calls.keep(tensors, self._kind, tape.replay or tape)
        return result

    def plain(self, tensors: Tensors) -> Any:
        """Compute as it is written."""
        if self._call is None:
            self._call = self._repeated.planned(tensors, self._options)
        return self._call(*tensors)

    def _afresh(self, tensors: Tensors) -> Any:
        """Compute with nothing decided yet."""
        return self._repeated.planned(tensors, self._options)(*tensors)
