"""Caches of decisions: bounded, and dropped together whenever a decision may have changed.

Preferences, executors, tuning records and Triton's settings are part of no key: code that changes one calls ``forget``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

MAX_ENTRIES = 4096
"""Entries of one cache; shapes that change from call to call must not grow the process."""

Value = TypeVar("Value")
_caches: list[Cache[Any]] = []
_generation = 0


class Cache(dict[Any, Value], Generic[Value]):
    """A dictionary that ``forget`` empties and ``keep`` bounds.

    Args:
        isolate: Whether ``isolated`` applies: not if entries hold for tensors without data as well.
    """

    def __init__(self, *, isolate: bool = True) -> None:
        super().__init__()
        self.isolate = isolate
        _caches.append(self)

    def keep(self, key: Any, value: Value) -> Value:
        """Store a value and return it; a full cache starts over."""
        if len(self) >= MAX_ENTRIES:
            self.clear()
        self[key] = value
        return value


def forget() -> None:
    """Empty all caches."""
    global _generation  # noqa: PLW0603  one count for the process
    _generation += 1
    for cache in _caches:
        cache.clear()


def generation() -> int:
    """Return how often ``forget`` was called."""
    return _generation


@contextlib.contextmanager
def isolated() -> Iterator[None]:
    """Start with empty caches and drop what is cached inside: it is valid for tensors without data only.

    The former entries are restored afterwards, unless ``forget`` was called in the meantime.
    """
    saved, before = [(cache, dict(cache)) for cache in _caches if cache.isolate], _generation
    for cache, _ in saved:
        cache.clear()
    try:
        yield
    finally:
        for cache, entries in saved:
            cache.clear()
            if before == _generation:
                cache.update(entries)
