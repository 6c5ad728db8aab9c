"""What an experiment keeps beside the store: its journal, attempts begun, why it stands still."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic

_MAX_BYTES = 4 << 20


class Begun(msgspec.Struct, frozen=True):
    """An attempt that was begun and is not in the store yet.

    Attributes:
        attempt: Its id in the journal.
        trial: The trial's id.
        settings: Every factor's value.
        definition: The trial's definition.
        identity: The run's identity.
        boot: Boot id of the host that it runs on.
        machine: Content hash of the machine snapshot.
        gfx_target: The GPU's target.
    """

    attempt: str
    trial: str
    settings: dict[str, str]
    definition: str
    identity: str
    boot: str = ""
    machine: str = ""
    gfx_target: str = ""


class Standstill(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why no trial, or not this one, may run in a boot.

    Attributes:
        boot: The boot id in which it came about.
        reason: Why.
        trial: The trial that waits for a boot; empty where all do.
        definition: Its definition.
    """

    boot: str
    reason: str
    trial: str = ""
    definition: str = ""


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives a reboot.

    Attributes:
        quarantine: Why nothing may run; None where it may.
        waiting: Trials that wait for another boot.
    """

    quarantine: Standstill | None = None
    waiting: tuple[Standstill, ...] = ()


class Bench:
    """The folder of an experiment.

    Args:
        folder: The folder; made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal.jsonl"
        self._begun = folder / "begun"
        self._state = folder / "state.json"

    def begin(self, begun: Begun) -> None:
        """Note an attempt before it starts."""
        write_atomic(self._begun / f"{begun.attempt}.json", msgspec.json.encode(begun), private=True)

    def begun(self) -> Iterator[Begun]:
        """Yield the attempts that were begun and not forgotten."""
        for path in sorted(self._begun.glob("*.json")) if self._begun.is_dir() else ():
            try:
                yield read_json(path, Begun, max_bytes=_MAX_BYTES, what="note of an attempt")
            except DataError as error:
                raise DataError(str(path), f"is damaged: it {error.message}", next_step="Remove it.") from error

    def forget(self, attempt: str) -> None:
        """Forget an attempt: it is in the store, or it never ended."""
        (self._begun / f"{attempt}.json").unlink(missing_ok=True)
        shutil.rmtree(self.out(attempt), ignore_errors=True)

    def empty_journal(self) -> None:
        """Empty the journal and take its logs away, once all that it holds is in the store; while it is locked."""
        os.truncate(self.journal, 0)
        shutil.rmtree(self.journal.with_suffix(".logs"), ignore_errors=True)

    def out(self, attempt: str) -> Path:
        """Return the folder that a local attempt may write to."""
        return self.folder / "out" / re.sub(r"[^\w.+-]", "_", attempt)

    def state(self) -> State:
        """Return what was noted of quarantine and reboots.

        Raises:
            DataError: The note is damaged.
        """
        with contextlib.suppress(FileNotFoundError):
            try:
                return read_json(self._state, State, max_bytes=_MAX_BYTES, what="state of an experiment")
            except DataError as error:
                raise DataError(str(self._state), f"is damaged: it {error.message}", next_step="Remove it.") from error
        return State()

    def keep(self, state: State) -> None:
        """Write down what was noted."""
        write_atomic(self._state, msgspec.json.encode(state), private=True)
