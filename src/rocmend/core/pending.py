"""What began in a log and has not ended, told apart by the device that its lines name.

A kernel log holds the lines of all cards: one card's recovery says nothing of another's reset.
"""

from __future__ import annotations

import re

import msgspec

from rocmend.core.signatures import Signature, ends_in

_DEVICE = re.compile(r"(?<![\w.:])(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?![\w.])", re.IGNORECASE)

Key = tuple[str, str]
"""The entry and the device."""


class _Begun(msgspec.Struct):
    signature: Signature
    offset: int


def device_in(line: str) -> str:
    """Return the PCI address that a line names first, as ``0000:c5:00.0``; empty where it names none."""
    found = _DEVICE.search(line)
    return f"{(found[1] or '0000')[-4:]}:{found[2]}".lower() if found else ""


class Pending:
    """Lines that began something that other lines take back.

    A line that names a device speaks of that device, or of what began on an unnamed one; a line that names none speaks
    of what began last.
    """

    def __init__(self) -> None:
        self._open: dict[Key, _Begun] = {}

    def begin(self, entry_id: str, signature: Signature, line: str, offset: int) -> None:
        """Take in a line that begins something, at an offset in the block that is looked at."""
        key = entry_id, device_in(line)
        self._open.pop(key, None)  # what begins anew is the last to have begun
        self._open[key] = _Begun(signature, offset)

    def end(self, kinds: set[str], line: str) -> list[Key]:
        """Return what a line of these kinds takes back, which is open no more."""
        told = [key for key, begun in self._open.items() if kinds & set(begun.signature.ended_by)]
        ended = _meant(told, device_in(line))
        for key in ended:
            del self._open[key]
        return ended

    def settle(self, block: bytes) -> list[Key]:
        """Return what lines of a block take back that are no errors themselves; the rest is open in the next block."""
        ended: list[Key] = []
        entries = {entry_id for entry_id, _ in self._open}
        for entry_id in entries:
            keys = [key for key in self._open if key[0] == entry_id]
            signature = self._open[keys[0]].signature
            for at, line in ends_in(signature, block, min(self._open[key].offset for key in keys)):
                gone = [key for key in keys if key in self._open and self._open[key].offset < at]
                if line is not None:  # else the kernel starts anew
                    gone = _meant(gone, device_in(line))
                    ended += gone
                for key in gone:
                    del self._open[key]
        for begun in self._open.values():
            begun.offset = -1
        return ended


def _meant(keys: list[Key], device: str) -> list[Key]:
    """Return which of the things that are open, in the order of their beginning, a line about a device speaks of."""
    if not device:
        return keys[-1:]
    named = [key for key in keys if key[1] == device]
    return named or [key for key in keys if not key[1]]
