"""The journal of attempts: an append-only file of events that outlives whatever is killed.

One JSON line an event: ``{"attempt": ID, "event": {…}}``. Each line is written at once; the file is flushed to disk
when an attempt begins, at its phases and when it ends. A line torn by a crash is passed over when the journal is read,
and ended before anything else is appended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from rocmend.core.documents import MALFORMED, open_regular
from rocmend.core.errors import UsageError
from rocmend.core.files import naming, open_private
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.result import AttemptResult

MAX_LINE_BYTES = 128 << 20
"""Of one event. The longest hold what a call returned (``supervisor.MESSAGE_BYTES``, more as it is written here)."""
_CHUNK_BYTES = 1 << 16
_SYNC_S = 0.5
_FLUSHED = frozenset({EventKind.START, EventKind.PHASE, EventKind.STACK, EventKind.DMESG})


class Record(msgspec.Struct, frozen=True):
    """One line of a journal."""

    attempt: str
    event: Event


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a journal; torn, foreign and overlong lines are passed over, an absent file has none.

    Raises:
        DataError: It is no regular file, or cannot be read.
    """
    decoder = msgspec.json.Decoder(Record)
    with contextlib.suppress(FileNotFoundError), open_regular(path) as file:
        for line in _lines(file):
            with contextlib.suppress(*MALFORMED):
                yield decoder.decode(line)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, without those that are longer than any that is written; none of these is held."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield line
            continue
        while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
            pass


def _is_finished(record: Record) -> bool:
    return record.event.kind is EventKind.END and record.event.data.get("verdict") != Verdict.SKIPPED.value


def read_results(path: Path) -> Iterator[AttemptResult]:
    """Yield the results of finished attempts in a journal, in the order in which they ended; stopped ones are not."""
    for record in read_records(path):
        if _is_finished(record):
            with contextlib.suppress(msgspec.ValidationError):
                yield msgspec.convert(record.event.data, AttemptResult)


class Journal:
    """A journal open for appending, by one process at a time.

    Args:
        path: The file; its folder is made. Both are the owner's alone: what programs print and are told is in it.

    Raises:
        UsageError: Another process has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._synced = 0.0
        self._descriptor = open_private(path, os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise UsageError(
                "journal", f"{path} is open in another process.", next_step="Wait for it, or use another journal."
            ) from error
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            with naming(path):
                os.write(self._descriptor, b"\n")  # the line that a crash tore

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Flush and let go of the file."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                with naming(self.path):
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def log_path(self, attempt_id: str) -> Path:
        """Return where the output of an attempt is kept."""
        name = re.sub(r"[^\w.+-]", "_", attempt_id)[:100]
        if name != attempt_id:
            import hashlib

            name += "-" + hashlib.sha256(attempt_id.encode()).hexdigest()[:8]
        return self.path.with_suffix(".logs") / f"{name}.log"

    def append(self, attempt_id: str, event: Event) -> None:
        """Write an event; it is on disk when this returns, where the event begins or ends something."""
        line = msgspec.json.encode(Record(attempt_id, event)) + b"\n"
        with self._lock, naming(self.path):
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
            now = time.monotonic()
            if event.kind is EventKind.END or (event.kind in _FLUSHED and now - self._synced > _SYNC_S):
                os.fdatasync(self._descriptor)
                self._synced = now

    def finished(self) -> Iterator[AttemptResult]:
        """Yield the results of finished attempts, in the order in which they ended."""
        return read_results(self.path)

    def completed_ids(self) -> dict[str, str]:
        """Return the ids of finished attempts, each with the identity of what it ran."""
        return {
            record.attempt: str(record.event.data.get("identity", ""))
            for record in read_records(self.path)
            if _is_finished(record)
        }
