"""What several hosts do now, on stderr: a line for each."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from typing import Self

import click

from rocmend.core.visible import one_line

_EVERY_S = 5.0
"""Between two lines of a host elsewhere than on a terminal."""
_DRAWN_S = 0.1
_MOST_DRAWN = 40
"""Hosts that are drawn on a terminal; of more, each has lines of its own as elsewhere."""


class HostLines:
    """Says what hosts do: on a terminal a line each, which changes; elsewhere a new line now and then.

    Args:
        names: The hosts.
    """

    def __init__(self, names: Sequence[str]) -> None:
        context = click.get_current_context(silent=True)
        self._drawn = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and len(names) <= _MOST_DRAWN
        program = context is not None and context.params.get("output_format", "human") != "human"
        self._quiet = program and not sys.stderr.isatty()
        self._texts = dict.fromkeys(names, "waits")
        self._told: dict[str, tuple[str, float]] = {}
        self._width = max(map(len, names), default=0)
        self._lock = threading.Lock()
        self._lines = 0
        self._next = 0.0

    def __enter__(self) -> Self:
        with self._lock:
            self._draw()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._next = 0.0
            self._draw()
            for name, text in self._texts.items():
                self._line(name, text, last=True)

    def __call__(self, name: str, text: str) -> None:
        """Tell what a host does now."""
        with self._lock:
            self._texts[name] = one_line(text)
            self._draw()
            self._line(name, self._texts[name])

    def _line(self, name: str, text: str, *, last: bool = False) -> None:
        """Print a line where the last one of this host is old, or says something else at the end."""
        if self._drawn or self._quiet:
            return
        before, at = self._told.get(name, ("", -_EVERY_S))
        now = time.monotonic()
        if text != before and (last or now - at >= _EVERY_S):
            self._told[name] = text, now
            sys.stderr.write(f"{name}: {text}\n")
            sys.stderr.flush()

    def _draw(self) -> None:
        now = time.monotonic()
        if not self._drawn or now < self._next:
            return
        self._next = now + _DRAWN_S
        columns = shutil.get_terminal_size().columns - 1
        rows = [f"{name.ljust(self._width)}  {text}"[:columns] for name, text in self._texts.items()]
        above = f"\x1b[{self._lines}A" if self._lines else ""
        sys.stderr.write(above + "".join(f"\r\x1b[K{row}\n" for row in rows))
        sys.stderr.flush()
        self._lines = len(rows)
