"""A journal of attempts, torn or made up."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from fuzz.target import BrokenPromiseError, Target
from rocmend.core.errors import RocmendError
from rocmend.runner.events import Event, EventKind
from rocmend.runner.journal import Journal, Record, read_records, read_results


def read(data: bytes) -> None:
    """Read it, then append to it: what is appended is found again whatever stood before it."""
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        path = Path(folder) / "journal.jsonl"
        path.write_bytes(data)
        with suppress(RocmendError):
            list(read_results(path))
            before = sum(1 for _ in read_records(path))
            with Journal(path) as journal:
                journal.append("mine", Event(1.0, EventKind.NOTE, "kept"))
                inside = journal.log_path(data.decode(errors="replace")).resolve()
            if not inside.is_relative_to(Path(folder).resolve()):
                raise BrokenPromiseError(f"a log would be written to {inside}")
            after = list(read_records(path))
            if len(after) != before + 1 or after[-1].event.text != "kept":
                raise BrokenPromiseError("what was appended is lost")


def seeds() -> Iterator[bytes]:
    """Yield journals, whole and torn."""
    lines = [
        Record("a", Event(0.0, EventKind.START, "begin")),
        Record("../../a", Event(5.0, EventKind.PHASE, "load", phase="load")),
        Record("a", Event(9.0, EventKind.END, "", data={"verdict": "pass", "attempt_id": "a"})),
    ]
    whole = b"\n".join(msgspec.json.encode(line) for line in lines) + b"\n"
    yield whole
    yield whole[:-20]
    yield b'{"attempt": "a"}\n\xff\xfe\n' + whole


TARGET = Target(read, seeds)
