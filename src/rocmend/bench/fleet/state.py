"""What is remembered of hosts: those in quarantine, and how far the runs of a fleet have come."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from rocmend.bench.fleet.host import RUN
from rocmend.bench.fleet.messages import Health
from rocmend.core.documents import read_json
from rocmend.core.errors import DataError, UsageError
from rocmend.core.files import write_atomic
from rocmend.core.places import data_home
from rocmend.core.suggest import unknown

T = TypeVar("T")
_MOST_BYTES = 8 << 20
_PREFIX = "fleet-"


class State(StrEnum):
    """What became of a host."""

    MEASURED = "measured"
    """All figures are there."""
    INCOMPLETE = "incomplete"
    """Some are there."""
    SKIPPED = "skipped"
    """It was not measured: in quarantine, busy, not healthy, or the fleet was interrupted before."""
    FAILED = "failed"
    """It was to be measured, and has no figure."""


class HostRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a host did.

    Attributes:
        host: What it is called.
        key: What tells it from others; stands in the names of its runs.
        state: What became of it.
        reason: Why it is not measured, or not in whole.
        runs: Its runs in the store, one for each GPU.
        figures: How many figures it has.
        expected: How many it should have.
        health: What its checks found.
        quarantine: Why later fleets leave it out; empty where they do not.
        notes: What is to be known about its runs.
        time_ms: How long it took.
    """

    host: str
    key: str
    state: State
    reason: str = ""
    runs: tuple[str, ...] = ()
    figures: int = 0
    expected: int = 0
    health: tuple[Health, ...] = ()
    quarantine: str = ""
    notes: tuple[str, ...] = ()
    time_ms: float = 0.0


class Fleet(msgspec.Struct, frozen=True, omit_defaults=True):
    """A benchmark on several hosts.

    Attributes:
        id: Its id; ``--resume`` takes it.
        words: The benchmark's command line.
        hosts: What became of each.
    """

    id: str
    words: tuple[str, ...]
    hosts: tuple[HostRun, ...] = ()

    @property
    def clean(self) -> bool:
        """Every host has all its figures and is healthy."""
        return all(host.state is State.MEASURED and not host.quarantine for host in self.hosts)


class Quarantined(msgspec.Struct, frozen=True):
    """A host that is not measured until a person says so.

    Attributes:
        host: What it was called.
        key: What tells it from others.
        reason: Why.
        since: ISO time (UTC).
        fleet: In which run it came about.
    """

    host: str
    key: str
    reason: str
    since: str
    fleet: str


class Notes:
    """The folder that they are kept in, one file each.

    Args:
        folder: The folder; None for the one in ROCMEND_HOME.
    """

    def __init__(self, folder: Path | None = None) -> None:
        base = folder or data_home() / "fleet"
        self._runs, self._quarantine = base / "runs", base / "quarantine"

    def keep(self, fleet: Fleet) -> None:
        """Write down how far a run has come."""
        write_atomic(self._runs / f"{fleet.id}.json", msgspec.json.encode(fleet), private=True)

    def fleet(self, name: str) -> Fleet:
        """Return a run by its id, or ``last``.

        Raises:
            UsageError: There is no such run.
            DataError: The note is damaged.
        """
        known = self._ids()
        name = known[-1] if name == "last" and known else name
        if name not in known:
            raise unknown("--resume", "run of a fleet", name, known[-50:], listed="rocmend bench hosts")
        return _read(self._runs / f"{name}.json", Fleet)

    def fleets(self, limit: int = 50) -> Iterator[Fleet]:
        """Yield the newest runs, the newest first; damaged notes are left out."""
        for name in reversed(self._ids()[-limit:]):
            with contextlib.suppress(DataError):
                yield _read(self._runs / f"{name}.json", Fleet)

    def _ids(self) -> list[str]:
        found = self._runs.glob(f"{_PREFIX}*.json") if self._runs.is_dir() else ()
        return sorted(path.stem for path in found if RUN.fullmatch(path.stem))

    def quarantine(self, run: HostRun, fleet: str) -> None:
        """Leave a host out from now on."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        made = Quarantined(run.host, run.key, run.quarantine, now, fleet)
        write_atomic(self._quarantine / f"{run.key}.json", msgspec.json.encode(made), private=True)

    def quarantined(self) -> dict[str, Quarantined]:
        """Return the hosts that are left out, by key.

        Raises:
            DataError: A note is damaged: whether its host may be measured is not known.
        """
        found = sorted(self._quarantine.glob("*.json")) if self._quarantine.is_dir() else ()
        return {one.key: one for one in (_read(path, Quarantined) for path in found)}

    def release(self, name: str) -> Quarantined:
        """Let a host be measured again.

        Args:
            name: What it is called; ``ssh:`` may stand before it.

        Raises:
            UsageError: It is not in quarantine.
        """
        known = self.quarantined()
        for one in known.values():
            if name.removeprefix("ssh:") in {one.host, one.key}:
                (self._quarantine / f"{one.key}.json").unlink(missing_ok=True)
                return one
        names = ", ".join(sorted(one.host for one in known.values())) or "no host"
        raise UsageError("--release", f"{name[:80]!r} is not in quarantine.", next_step=f"In quarantine: {names}.")


def _read(path: Path, kind: type[T]) -> T:
    try:
        return read_json(path, kind, max_bytes=_MOST_BYTES, what="note of a fleet")
    except DataError as error:
        raise DataError(str(path), f"is damaged: it {error.message}", next_step="Remove it.") from error
