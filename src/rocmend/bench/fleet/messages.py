"""What a host says while it measures: a JSON object a line, behind a mark.

Other lines may stand between them: what tools print, and where a pod's log is read, standard error.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import msgspec

from rocmend.core.documents import MALFORMED

PROTOCOL = 1
MARK = "rocmend-fleet:"
_PART_BYTES = 24 << 10
"""Of an archive in a line: a line of 32 KiB is looked at in one piece."""
MOST_PARTS = (64 << 20) // _PART_BYTES


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The first message.

    Attributes:
        protocol: Version of these messages.
        version: Version of rocmend.
        gpus: What is measured, one after the other: numbers of GPUs; empty text for the machine as it is.
    """

    protocol: int
    version: str
    gpus: tuple[str, ...]


class Doing(msgspec.Struct, frozen=True, tag="doing", omit_defaults=True):
    """What is being done now; also said when nothing has changed for a while.

    Attributes:
        text: In words.
        gpu: On which GPU.
    """

    text: str
    gpu: str = ""


class Busy(msgspec.Struct, frozen=True, tag="busy"):
    """Another rocmend measures there.

    Attributes:
        reason: Which.
    """

    reason: str


class Health(msgspec.Struct, frozen=True, tag="health", omit_defaults=True):
    """What a check of the machine found.

    Attributes:
        when: ``before`` or ``after`` the measurement.
        gpu: Of which GPU.
        problems: Why the machine is not healthy; empty where it is.
        notes: What could not be checked, and what is no problem yet.
    """

    when: str
    gpu: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Ran(msgspec.Struct, frozen=True, tag="ran", omit_defaults=True):
    """A benchmark has ended.

    Attributes:
        gpu: On which GPU.
        code: Its exit code.
        reason: Why there is no result, or not all of it.
        figures: How many figures it has.
        expected: How many it should have.
        notes: What is to be known about the run.
        quarantine: Why nothing more should be started on the machine.
    """

    gpu: str = ""
    code: int = 0
    reason: str = ""
    figures: int = 0
    expected: int = 0
    notes: tuple[str, ...] = ()
    quarantine: str = ""


class Part(msgspec.Struct, frozen=True, tag="part"):
    """A part of an archive of evidence.

    Attributes:
        gpu: Of which GPU.
        number: From 0.
        parts: How many there are.
        sha256: Of the whole archive.
        data: In base64.
    """

    gpu: str
    number: int
    parts: int
    sha256: str
    data: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The last message."""


Message = Hello | Doing | Busy | Health | Ran | Part | Ended
_DECODER = msgspec.json.Decoder(Message)


def line_of(message: Message) -> str:
    """Return a message as a line, without its end."""
    return f"{MARK} {msgspec.json.encode(message).decode()}"


def message_in(line: str) -> Message | None:
    """Return the message that a line holds; None where it holds none, or a newer rocmend's."""
    _, mark, text = line.partition(f"{MARK} ")
    try:
        return _DECODER.decode(text) if mark else None
    except MALFORMED:
        return None


def parts_of(archive: bytes, gpu: str) -> Iterator[Part]:
    """Yield an archive in parts."""
    sha256 = hashlib.sha256(archive).hexdigest()
    pieces = [archive[at : at + _PART_BYTES] for at in range(0, len(archive), _PART_BYTES)]
    for number, piece in enumerate(pieces):
        yield Part(gpu, number, len(pieces), sha256, base64.b64encode(piece).decode())


class Joiner:
    """Puts an archive together again from its parts, which may come twice; bounded."""

    def __init__(self) -> None:
        self._sha256 = ""
        self._pieces: dict[int, bytes] = {}

    def add(self, part: Part) -> bytes | None:
        """Take in a part; return the archive once it is whole and right, else None."""
        if not 0 <= part.number < part.parts <= MOST_PARTS:
            return None
        if part.sha256 != self._sha256:
            self._sha256, self._pieces = part.sha256, {}
        try:
            self._pieces[part.number] = base64.b64decode(part.data, validate=True)
        except ValueError:
            return None
        if len(self._pieces) < part.parts:
            return None
        whole = b"".join(self._pieces[number] for number in sorted(self._pieces))
        return whole if hashlib.sha256(whole).hexdigest() == part.sha256 else None
