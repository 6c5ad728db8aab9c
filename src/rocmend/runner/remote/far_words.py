"""What a far host says: cut out of its streams, and believed only within bounds.

The far host, and what runs on it, may be anybody's. Of its messages the known ones are taken, each in its form; no text
of it names a file here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from rocmend.core.visible import visible
from rocmend.runner.events import Sample, Stack

_MAX_MESSAGE_BYTES = 1 << 16
_MAX_STACK_CHARS = 4096
MAX_LEFT = 32
_MAX_PID_DIGITS = 10

_FORMS = {
    "begin": re.compile(""),
    "pid": re.compile(r"[0-9]{1,10}"),
    "exit": re.compile(r"25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2}"),
    "left": re.compile(r"[0-9 ]*"),
    "missing": re.compile(r"[a-z]{1,20}"),
    "nofolder": re.compile(""),
    "noprogram": re.compile(""),
}
_PROCESS = re.compile(
    r"(\d{1,10}):([A-Za-z]):(\d{1,18}):(-?\d{1,10}):(-?\d{1,9}):(\d{1,19}):([A-Za-z0-9_.+]{0,64})", re.ASCII
)
_UPTIME = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_MAX_PROCESSES = 32


def is_sound(kind: str, text: str) -> bool:
    """Whether a message is a known one and has its form."""
    form = _FORMS.get(kind)
    return form is not None and len(text) <= 1024 and form.fullmatch(text) is not None


def parse_stack(text: str) -> Stack | None:
    """Return the kernel stack of a ``stack`` message; None where it is damaged."""
    pid, _, frames = text.partition(" ")
    if not _FORMS["pid"].fullmatch(pid):
        return None
    lines = visible(frames[:_MAX_STACK_CHARS]).replace("|", "\n").strip()
    return Stack("kernel", lines, int(pid))


def parse_left(said: bytes) -> tuple[int, ...] | None:
    """Return the processes that the ending script says are left; None where it does not say."""
    for line in said.split(b"\n"):
        if line.startswith(b"left ") and is_sound("left", line[5:].decode(errors="replace")):
            return tuple(int(pid) for pid in line[5:].split()[:MAX_LEFT] if len(pid) <= _MAX_PID_DIGITS)
    return None


class Marks:
    """Cuts the script's messages out of a stream.

    Args:
        word: The random word of the mark.
        on_message: Given each message.

    Attributes:
        begun: The first message came; what stood before it (a login's greeting) is no output of the command.
        before: The beginning of what stood before it.
    """

    def __init__(self, word: str, on_message: Callable[[str], None]) -> None:
        self.begun = False
        self.before = b""
        self._mark = b"\x1e" + word.encode() + b" "
        self._on_message = on_message
        self._held = b""

    def __call__(self, data: bytes) -> bytes:
        """Take in bytes; return those that are the command's. Nothing means the end."""
        self._held += data
        passed: list[bytes] = []
        while (at := self._held.find(self._mark)) >= 0:
            end = self._held.find(b"\n", at)
            if end < 0 and len(self._held) - at <= _MAX_MESSAGE_BYTES and data:
                self._pass(passed, self._held[:at])
                self._held = self._held[at:]
                return b"".join(passed)
            if end < 0:
                break
            self._pass(passed, self._held[:at])
            message = self._held[at + len(self._mark) : end]
            self._held = self._held[end + 1 :]
            self.begun = True
            self._on_message(message.decode(errors="replace"))
        kept = self._overlap() if data else 0
        split = len(self._held) - kept
        self._pass(passed, self._held[:split])
        self._held = self._held[split:]
        return b"".join(passed)

    def _pass(self, passed: list[bytes], data: bytes) -> None:
        if self.begun and data:
            passed.append(data)
        elif not self.begun:
            self.before = (self.before + data)[:2000]

    def _overlap(self) -> int:
        """Return how many bytes at the end may be the beginning of a mark."""
        for length in range(min(len(self._mark) - 1, len(self._held)), 0, -1):
            if self._held.endswith(self._mark[:length]):
                return length
        return 0


class FarProcess(msgspec.Struct, frozen=True):
    """One process of a sample."""

    pid: int
    state: str
    ticks: int
    rss_pages: int
    threads: int
    waited_ns: int
    """Time that its threads were ready to run while others ran; 0 where the kernel does not count it."""
    wchan: str


def parse_sample(text: str) -> tuple[float, tuple[FarProcess, ...]] | None:
    """Return uptime in seconds and processes of a ``sample`` message; None where it is damaged."""
    uptime, *entries = text.split() or [""]
    found = [_PROCESS.fullmatch(entry) for entry in entries[:_MAX_PROCESSES]]
    if not _UPTIME.fullmatch(uptime) or not all(found):
        return None
    processes = []
    for match in filter(None, found):
        pid, state, ticks, rss, threads, waited, wchan = match.groups()
        place = "" if wchan == "0" else wchan
        processes.append(FarProcess(int(pid), state, int(ticks), int(rss), int(threads), int(waited), place))
    return float(uptime), tuple(processes)


class FarSampler:
    """Makes samples of the processes that the script tells of.

    Attributes:
        ticks_per_s: Clock ticks a second over there.
        page_bytes: Size of a page over there.
    """

    def __init__(self) -> None:
        self.ticks_per_s = 100
        self.page_bytes = 4096
        self._last: tuple[float, dict[int, FarProcess]] | None = None

    def host(self, text: str) -> None:
        """Take in a ``host`` message."""
        values = text.split()
        if len(values) == 2 and all(re.fullmatch(r"[1-9][0-9]{0,6}", value) for value in values):
            self.ticks_per_s, self.page_bytes = (int(value) for value in values)

    def sample(self, text: str) -> Sample | None:
        """Return what a ``sample`` message tells; None where no process lives or it is damaged."""
        parsed = parse_sample(text)
        if parsed is None or not parsed[1]:
            return None
        uptime, processes = parsed
        used = {process.pid: 0 for process in processes}
        rate = wait_rate = None
        if self._last is not None and uptime > self._last[0]:
            elapsed, before = uptime - self._last[0], self._last[1]
            pairs = [(before.get(process.pid), process) for process in processes]
            used = {now.pid: max(0, now.ticks - (last.ticks if last else 0)) for last, now in pairs}
            waited = sum(max(0, now.waited_ns - (last.waited_ns if last else 0)) for last, now in pairs)
            rate = round(sum(used.values()) / self.ticks_per_s / elapsed, 3)
            wait_rate = round(waited / 1e9 / elapsed, 3)
        self._last = (uptime, {process.pid: process for process in processes})
        busiest = max(processes, key=lambda process: (used[process.pid], -"RDTtSIZ".find(process.state), process.pid))
        return Sample(
            cpu_rate=rate,
            cpu_wait_rate=wait_rate,
            state=busiest.state,
            wchan="" if busiest.state == "R" else busiest.wchan,
            rss_bytes=sum(process.rss_pages for process in processes) * self.page_bytes,
            threads=sum(process.threads for process in processes),
            processes=len(processes),
        )
