"""What a command says on stderr while it works."""

from __future__ import annotations

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
        self._begin = self._expected_at = time.monotonic()
        self._counted: tuple[int, int, float, float] | None = None
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
        now = time.monotonic()
        if not of or self._counted is None or done < self._counted[1]:
            self._counted = (done, done, now, now) if of else None
        elif done > self._counted[1]:
            self._counted = (self._counted[0], done, self._counted[2], now)
        self._show()

    def expect(self, about_s: float) -> None:
        """Take a better estimate of the time that all of it takes from now on."""
        self._about_s, self._expected_at = about_s, time.monotonic()

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
        before, after = f"{self._what}: {count}", self._times(now, done, of)
        text, room = one_line(text), width - len(before) - len(after)
        if width and len(text) > room:
            text = f"{text[: max(0, room - 1)]}…"
        return f"{before}{text}{after}"[: width or None]

    def _times(self, now: float, done: int, of: int) -> str:
        """Return how long it has taken, and how long it will: as expected, corrected by the parts that are done."""
        passed_s = now - self._begin
        if passed_s < 1:
            return f" (about {rounded_time(self._about_s)})" if self._about_s else ""
        by_parts_s, parts = self._left_by_parts(now, done, of)
        expected_s = self._expected_at + self._about_s - now if self._about_s else None
        if by_parts_s is None or (parts < _LEAST_DONE and expected_s is not None):
            left_s = expected_s if by_parts_s is None or expected_s is None else max(expected_s, by_parts_s)
        else:
            left_s = by_parts_s
        if left_s is None:
            return f" ({passed_s:.0f} s)"
        left = f"about {rounded_time(left_s)} left" if left_s > 0 else "longer than expected"
        return f" ({passed_s:.0f} s, {left})"

    def _left_by_parts(self, now: float, done: int, of: int) -> tuple[float | None, int]:
        """Return how long the parts that are left take at the pace of those that are done, and how many those are."""
        if self._counted is None or not of > done:
            return None, 0
        first, last, since, until = self._counted
        parts = last - first  # what an earlier run has done says nothing of the pace
        if parts < (1 if self._about_s else _LEAST_DONE):
            return None, parts
        pace_s = (until - since) / parts
        return pace_s * (of - done - 1) + max(0.0, pace_s - (now - until)), parts

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
