"""A fuzz target: a function that is given bytes, and small valid inputs to begin with."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BrokenPromiseError", "Target", "choice", "load", "names"]

_TARGETS = Path(__file__).parent / "targets"


class BrokenPromiseError(Exception):
    """The code under test returned something that it promises not to."""


@dataclass(frozen=True)
class Target:
    """What a module in ``fuzz/targets`` defines as ``TARGET``.

    Attributes:
        run: Given one input. It suppresses the errors that the code under test documents; any other is a finding.
        seeds: Makes small valid inputs; called once, where the corpus is empty.
        max_bytes: The longest input that is tried.
        memory_limit_mb: More than this is a finding.
        time_limit_s: An input that takes longer is a finding.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    max_bytes: int = 4096
    memory_limit_mb: int = 768
    time_limit_s: int = 5


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(info.name for info in pkgutil.iter_modules([str(_TARGETS)]))


def load(name: str) -> Target:
    """Import a target."""
    found = importlib.import_module(f"fuzz.targets.{name}").TARGET
    if not isinstance(found, Target):
        raise TypeError(f"fuzz.targets.{name}.TARGET is no Target")
    return found


def choice(runs: tuple[Callable[[bytes], None], ...]) -> Callable[[bytes], None]:
    """Return a function that gives an input to one of several: the first byte says which."""

    def run(data: bytes) -> None:
        if data:
            runs[data[0] % len(runs)](data[1:])

    return run
