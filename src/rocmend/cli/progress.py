"""What a command says on stderr while it works."""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
import time
from typing import Self

import click

from rocmend.cli.output import tell
from rocmend.core.variables import PROGRESS
from rocmend.core.visible import one_line


class Progress:
    """Says on stderr what a command is doing: at once, then in one line that changes, or a line now and then.

    On a terminal the line is written over, and cleared at the end. Elsewhere a new line comes every few seconds, after
    a minute every half minute, and none where the result is for a program (``--json`` and the like).

    Args:
        what: The command: ``rocmend probe``.
        first: What it begins with.
        about_s: How long all of it is going to take, as far as that is known; 0 says nothing.
        quick: It is mostly over at once: elsewhere than on a terminal nothing is said in the first second.
        ticks: The time goes on while nothing is told. Off for work that forks, which no thread may disturb.
    """

    def __init__(
        self, what: str, first: str = "", *, about_s: float = 0.0, quick: bool = False, ticks: bool = True
    ) -> None:
        context = click.get_current_context(silent=True)
        self._what = what
        self._about_s = about_s
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        program = context is not None and context.params.get("output_format", "human") != "human"
        self._quiet = not self._terminal and program and not os.environ.get(PROGRESS)
        self._doing = (first, 0, 0, "")
        self._begin = time.monotonic()
        self._ends_at = math.inf
        self._next = self._begin + 1.0 if quick and not self._terminal else 0.0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True) if ticks and not self._quiet else None

    shown = 0
    """How many are at work now: what is called inside one starts none of its own."""

    def __enter__(self) -> Self:
        Progress.shown += 1
        if self._doing[0]:
            self._show()
        if self._ticker is not None:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        Progress.shown -= 1
        self._end.set()
        if self._ticker is not None:
            self._ticker.join()
        self._clear()

    def __call__(self, text: str, done: int = 0, of: int = 0, unit: str = "") -> None:
        """Tell what is being done now.

        Args:
            text: What.
            done: Parts that are done,
            of: of so many; 0 where nobody knows.
            unit: What the parts are: ``files``.
        """
        self._doing = (text, done, of, unit)
        self._show()

    def expect(self, about_s: float) -> None:
        """Take a better estimate of the time that all of it takes."""
        self._about_s = about_s
        self._ends_at = math.inf

    def say(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            self._clear()
            tell(text)
            self._next = 0.0 if self._terminal else self._next

    def _tick(self) -> None:
        while not self._end.wait(_TICK_S):
            self._show()

    def _show(self) -> None:
        now = time.monotonic()
        with self._lock:
            if self._quiet or not self._doing[0] or now < self._next:
                return
            rest_s = _LINE_EVERY_S if now - self._begin < _MINUTE_S else _LATER_EVERY_S
            self._next = now + (_EVERY_S if self._terminal else rest_s)
            if self._terminal:
                sys.stderr.write(f"\r\x1b[K{self.line(now, shutil.get_terminal_size().columns - 1)}")
            else:
                sys.stderr.write(f"{self.line(now)}\n")
            sys.stderr.flush()

    def line(self, now: float, width: int = 0) -> str:
        """Return the line as it is at a time, what is being done cut to fit a width; 0 for any."""
        text, done, of, unit = self._doing
        count = f"{done:,} of {of:,}{' ' + unit if unit else ''}, " if of else ""
        before, after = f"{self._what}: {count}", self._times(now - self._begin, done, of)
        text, room = one_line(text), width - len(before) - len(after)
        if width and len(text) > room:
            text = f"{text[: max(0, room - 1)]}…"
        return f"{before}{text}{after}"[: width or None]

    def _times(self, passed_s: float, done: int, of: int) -> str:
        """Return how long it has taken, and how long it will: by what is done, or else as expected.

        The end that was told is not put off: once it is past, nothing is said of what is left.
        """
        left_s = self._about_s - passed_s
        if of > done >= _LEAST_DONE and passed_s >= 1:
            left_s = passed_s / done * (of - done)
        if passed_s >= 1 and left_s > 0:
            self._ends_at = min(self._ends_at, passed_s + left_s)
            left_s = self._ends_at - passed_s
        passed = f"{passed_s:.0f} s" if passed_s >= 1 else ""
        left = f"about {rounded_time(left_s)} left" if passed and left_s > 0 else ""
        if not passed and self._about_s:
            left = f"about {rounded_time(self._about_s)}"
        said = ", ".join(part for part in (passed, left) if part)
        return f" ({said})" if said else ""

    def _clear(self) -> None:
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def rounded_time(seconds: float) -> str:
    """Return a time as roughly as it is known."""
    if seconds >= 90:
        return f"{max(2, round(seconds / 60))} min"
    return f"{max(5, 5 * round(seconds / 5))} s" if seconds >= 3 else "3 s"


_EVERY_S = 0.1
"""Between two changes of the line on a terminal."""
_LINE_EVERY_S = 5.0
"""Between two lines elsewhere, in the first minute,"""
_LATER_EVERY_S = 30.0
"""and after it."""
_MINUTE_S = 60.0
_TICK_S = 0.5
_LEAST_DONE = 3
"""Parts after which the time that is left is told by those that are done."""
