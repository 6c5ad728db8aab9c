"""A pod's log, read again after a disconnect with no line lost and none twice.

The kubelet puts a time in front of each line when asked to, and can begin at a time, in whole seconds. So the lines of
the last two seconds are remembered, and where a new stream repeats them they are dropped.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d) ?")
_MAX_LINE_BYTES = 1 << 20
_KEPT_S = 2


class PodLog:
    """Puts streams of one log together.

    Attributes:
        lines: Lines given on so far.
        repeated: Lines dropped because they had come before.
    """

    def __init__(self) -> None:
        self.lines = 0
        self.repeated = 0
        self._held = b""
        self._recent: dict[bytes, Counter[tuple[bytes, int]]] = {}
        self._expected: Counter[tuple[bytes, int]] = Counter()

    def begin(self) -> str:
        """Begin a new stream; return the time to ask for (``sinceTime``), empty for the log's beginning.

        The end of a line that was cut off is forgotten: the new stream has the whole line.
        """
        self._held = b""
        self._expected = Counter()
        for counts in self._recent.values():
            self._expected += counts
        return min(self._recent).decode() + "Z" if self._recent else ""

    def feed(self, data: bytes) -> bytes:
        """Take in a piece of the stream; return the lines that are new, without their times."""
        *lines, self._held = (self._held + data).split(b"\n")
        if len(self._held) > _MAX_LINE_BYTES:
            lines.append(self._held)
            self._held = b""
        return b"".join(self._new(line) + b"\n" for line in lines if self._is_new(line))

    def end(self) -> bytes:
        """Return the last line, where it has no newline and the log is known to be whole."""
        held, self._held = self._held, b""
        return self._new(held) if held and self._is_new(held) else b""

    def _new(self, line: bytes) -> bytes:
        self.lines += 1
        return _STAMP.sub(b"", line, count=1) if _STAMP.match(line) else line

    def _is_new(self, line: bytes) -> bool:
        stamp = _STAMP.match(line)
        if stamp is None:
            return True
        key = (stamp[0], hash(line))
        if self._expected[key] > 0:
            self._expected[key] -= 1
            self.repeated += 1
            return False
        second = stamp[1] if stamp[2] == b"Z" else _in_utc(stamp[1] + stamp[2])
        if second not in self._recent:
            self._recent[second] = Counter()
            oldest = _before(max(self._recent), _KEPT_S)
            self._recent = {kept: counts for kept, counts in self._recent.items() if kept >= oldest}
            if second not in self._recent:
                return True  # it is out of order by more than we remember
        self._recent[second][key] += 1
        return True


def _before(second: bytes, seconds: int) -> bytes:
    try:
        moment = dt.datetime.fromisoformat(second.decode()) - dt.timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return second
    return moment.isoformat().encode()


def _in_utc(stamp: bytes) -> bytes:
    try:
        moment = dt.datetime.fromisoformat(stamp.decode()).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return stamp[:19]
    return moment.replace(tzinfo=None).isoformat().encode()
