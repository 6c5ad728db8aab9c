"""Classes of kernel-log lines that say something about a GPU's health.

A class is a signature of a knowledge entry that has a kind (``log = "kernel"``). Messages are those of
drivers/gpu/drm/amd and mm/oom_kill.c in Linux 5.15 to 7.0.
"""

from __future__ import annotations

import re

import msgspec

from rocmend.core.pending import Pending, device_in
from rocmend.core.signatures import kernel_classes, kernel_kinds

MAX_CHARS = 16 << 20
"""Characters looked at; the kernel's ring buffer holds far less."""

MAX_LINE_CHARS = 2000


class LogClass(msgspec.Struct, frozen=True):
    """A kind of line.

    Attributes:
        id: Its name, as in ``dmesg.<id>``.
        meaning: What such a line says.
        entry_id: The knowledge entry that explains it.
        examples: Lines of the kind.
    """

    id: str
    meaning: str
    entry_id: str
    examples: tuple[str, ...]


CLASSES = tuple(
    LogClass(
        one.signature.kind,
        one.signature.meaning,
        one.entry_id,
        tuple(line.text for line in one.signature.lines),
    )
    for one in kernel_kinds()
)
"""The signatures of knowledge entries that are classes of kernel lines."""

_RESETS = {
    "reset_begin": "unfinished",
    "reset_recovered": "recovered",
    "ring_reset": "recovered",
    "reset_failed": "failed",
}
"""How the last reset stands after a line of a class. Lines such as "MODE1 reset" are printed before it is tried."""

_WORST = ("unfinished", "failed", "recovered")

_MONOTONIC = re.compile(r"^(?:<\d{1,3}>)?\[[ \t]{0,10}(\d{1,10}\.\d{1,9})\]")
_STAMP = re.compile(
    r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,+:Z-]{0,20}|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\s"
)
_BOOT = re.compile(r"\bLinux version \d")
_RELEVANT = (
    r"amdgpu|amdkfd|\bkfd\b|\bdrm\b|\bttm\b|amdxdna|AMD-Vi|\biommu\b|DMAR|out of memory|\boom|pcieport|PCIe Bus Error"
    r"|\bAER\b|Linux version|Command line|\bVRAM\b|\bGTT\b|\bEDAC\b|\bSVM\b|MMU notifier"
)


class Seen(msgspec.Struct, frozen=True):
    """The lines of one class.

    Attributes:
        count: How many.
        first: The first one.
        first_time: Its time as printed: seconds since the start, or a date; empty where none is printed.
        last_time: The last one's.
    """

    count: int
    first: str
    first_time: str
    last_time: str


def classify(text: str) -> dict[str, Seen]:
    """Return what classes of lines a kernel log holds, from the output of dmesg or journalctl or a log file.

    A line can be of several classes (a timeout of an SDMA ring is a ring timeout too).
    """
    found: dict[str, Seen] = {}
    for hit in kernel_classes().scan(text[:MAX_CHARS].encode(errors="replace")):
        for one in hit.known:
            kind, time = one.signature.kind, line_time(hit.line)
            before = found.get(kind)
            found[kind] = (
                Seen(1, hit.line, time, time)
                if before is None
                else Seen(before.count + 1, before.first, before.first_time, time)
            )
    return found


def last_reset(text: str) -> str | None:
    """Return how the last reset of the GPU in a kernel log went.

    Returns:
        ``recovered``, ``failed``, ``unfinished`` where nothing follows its beginning, None where there was none. Of
        several cards, each with its own last reset, the worst.
    """
    log = text[:MAX_CHARS].encode(errors="replace")
    pending = Pending()
    how, last = dict[str, str](), ""
    for hit in kernel_classes().scan(log):
        kinds = [one for one in hit.known if one.signature.kind in _RESETS]
        for one in kinds:
            state = _RESETS[one.signature.kind]
            ended = pending.end({one.signature.kind}, hit.line)
            devices = [device for _, device in ended] or [device_in(hit.line) or last]
            how |= dict.fromkeys(devices, state)
            last = devices[-1]
            if one.signature.ended_by:
                pending.begin(one.entry_id, one.signature, hit.line, hit.offset)
    how |= {device: "recovered" for _, device in pending.settle(log)}
    return next((state for state in _WORST if state in how.values()), None)


def line_time(line: str) -> str:
    """Return a line's time as printed, or an empty string."""
    match = _MONOTONIC.match(line) or _STAMP.match(line)
    return match[1] if match else ""


def last_boot(text: str) -> str:
    """Return the part of a log file since the last start of the kernel (all of it where no start is in it)."""
    start = 0
    for match in _BOOT.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
    return text[start:]


def relevant_lines(text: str) -> str:
    """Return the lines that concern GPUs, memory or PCI: what a capture keeps of a kernel log.

    A line of any class is among them, so that classifying what is left gives the same result.
    """
    relevant = re.compile(_RELEVANT, re.IGNORECASE)
    classes = kernel_classes()
    return "\n".join(
        line
        for line in text.split("\n")
        if not line or relevant.search(line[:MAX_LINE_CHARS]) or classes.of(line[:MAX_LINE_CHARS])
    )
