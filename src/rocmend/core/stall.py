"""Deadlines that a pause of our own does not use up.

Whoever watches another process takes a pause of their own for its silence: SIGSTOP or Ctrl-Z, a frozen container, a
paused virtual machine, a machine so loaded that we do not get a processor. ``StallClock`` is monotonic time without the
time that was lost like this, which is noticed when a wait ends later than it was to end.

The clock is ``CLOCK_MONOTONIC``, which no change of the wall clock moves and which stands still on Linux while the
machine is suspended: neither side runs then, so that neither side's time is used up. ``CLOCK_BOOTTIME`` goes on
meanwhile; it serves only to tell of it.

Source: https://man7.org/linux/man-pages/man2/clock_gettime.2.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

BEAT_S = 0.5
"""No wait is longer, in seconds: a pause that falls within a longer one could not be noticed."""

LATE_S = 0.25
"""Seconds of delay above which we count as paused; less is what a scheduler does."""

TELL_S = 1.0
"""Seconds of pause worth a note."""


class StallClock:
    """Monotonic time less what passed while we were paused ourselves; used by one thread.

    Time that passed between two readings counts as a pause, but for what our own work took and for what it waited for a
    processor: a program that gives us much to do, or that takes all processors, must not stop the clock by it.
    Of several late waits in a row the first is left out as a whole, and of the others only their delay: on a machine
    that is always late a deadline is still reached.

    Attributes:
        lost_s: Seconds left out so far.
    """

    def __init__(self) -> None:
        self.lost_s = 0.0
        self._last = time.monotonic()
        self._used = _used_s()
        self._late = False
        self._told_s = 0.0
        self._asleep_s = _asleep_s()

    def now(self, asked_s: float = 0.0) -> float:
        """Return the time, in seconds since any point.

        Args:
            asked_s: How long what was done since the last reading may take: something of ours that waits by itself.
        """
        gap, used = self._passed()
        if gap - used > asked_s + LATE_S:
            self.lost_s += gap - used
        return self._last - self.lost_s

    def _passed(self) -> tuple[float, float]:
        """Return the time since the last reading, and for how much of it we ran or were ready to."""
        last, before = self._last, self._used
        self._last, self._used = time.monotonic(), _used_s()
        return self._last - last, self._used - before

    def leave_out(self, seconds: float) -> None:
        """Leave out a pause that another clock has measured."""
        self.lost_s += seconds

    def wait(self, function: Callable[[float], T], seconds: float) -> T:
        """Call something that waits, for ``BEAT_S`` at most; after a pause again, for what came in meanwhile.

        Args:
            function: Takes seconds, such as ``selector.select``; what it returns must still be there when asked again.
            seconds: How long it may take; less than 0 is 0.
        """
        self.now()
        asked = min(max(0.0, seconds), BEAT_S)
        found = function(asked)
        gap, used = self._passed()
        late = gap - used - asked > LATE_S
        if late:
            self.lost_s += gap - used - asked if self._late else gap - used
            found = function(0.0)  # an interrupted wait reports its end, and not what came in meanwhile
        self._late = late
        return found

    def sleep(self, seconds: float) -> None:
        """Sleep for this long."""
        end = self.now() + seconds
        while (left := end - self.now()) > 0:
            self.wait(time.sleep, left)

    def news(self) -> tuple[str, ...]:
        """Return what there is to say of pauses since the last call."""
        said = []
        lost, asleep = self.lost_s - self._told_s, _asleep_s() - self._asleep_s
        if lost >= TELL_S:
            self._told_s = self.lost_s
            said.append(f"rocmend itself was stopped for {lost:.1f} s; deadlines moved")
        if asleep >= TELL_S:
            self._asleep_s += asleep
            said.append(f"the machine was suspended for {asleep:.0f} s; that counts towards no deadline")
        return tuple(said)


def _asleep_s() -> float:
    """Return how long this machine has been suspended since it was booted; 0 where that is not told."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if clock is None else time.clock_gettime(clock) - time.clock_gettime(time.CLOCK_MONOTONIC)


def _used_s() -> float:
    """Return for how long this thread has run, and, where the kernel tells, has been ready while others ran.

    Source: https://docs.kernel.org/scheduler/sched-stats.html
    """
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:  # noqa: PTH123  often, and without objects
            ran, waited = file.read().split()[:2]
    except (OSError, ValueError):
        return time.thread_time()
    return (int(ran) + int(waited)) / 1e9
