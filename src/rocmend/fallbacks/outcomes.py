"""What came of trying a path, and where that is kept between runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import make_private, write_atomic
from rocmend.core.private import cache_folder

log = logging.getLogger("rocmend.fallbacks")

_SCHEMA = 1
_MOST_MACHINES = 16
_LARGEST_BYTES = 4 << 20
_LASTING = frozenset({"pass", "wrong-output", "hang", "crash", "unsupported"})
"""Verdicts about the path itself; others (out of memory, no child could be started) may pass by the next run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of trying one path.

    Attributes:
        path: The path, e.g. ``native``.
        verdict: One of ``rocmend.core.verdict.Verdict``'s values.
        reason: Why, in a sentence.
        time_ms: Time of the suite's timed case where it passed, else 0.
        tried_at: ISO time (UTC).
    """

    path: str
    verdict: str
    reason: str
    time_ms: float = 0.0
    tried_at: str = ""

    @property
    def passed(self) -> bool:
        """The path works."""
        return self.verdict == "pass"


class OutcomeCache:
    """Outcomes kept in one JSON file, by what defines the machine and the software.

    A file that cannot be read or written is done without, and said so in the log.

    Args:
        path: The file; None for ``torch-paths.json`` in the user's cache folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_folder("torch") / "torch-paths.json"

    def find(self, machine: Mapping[str, str], subject: str, path: str) -> Outcome | None:
        """Return the outcome of trying ``path`` for ``subject`` on this machine, where one is kept."""
        entry = self._read().get(machine_key(machine), {}).get("outcomes", {}).get(f"{subject}/{path}")
        if not isinstance(entry, dict):
            return None
        try:
            return msgspec.convert(entry, Outcome)
        except msgspec.ValidationError:
            return None

    def keep(self, machine: Mapping[str, str], subject: str, outcome: Outcome) -> None:
        """Keep an outcome, where its verdict is about the path itself."""
        if outcome.verdict not in _LASTING:
            return
        try:
            with self.locked("write"):
                machines = self._read()
                mine = machines.pop(machine_key(machine), {"machine": dict(machine), "outcomes": {}})
                mine["outcomes"][f"{subject}/{outcome.path}"] = asdict(outcome)
                machines[machine_key(machine)] = mine  # the last is the latest
                latest = dict(list(machines.items())[-_MOST_MACHINES:])
                text = json.dumps({"schema": _SCHEMA, "machines": latest}, indent=1) + "\n"
                write_atomic(self.path, text, private=True)
        except OSError as error:
            log.warning("rocmend: cannot keep what was found in %s: %s", self.path, error)

    @contextlib.contextmanager
    def locked(self, purpose: str) -> Iterator[None]:
        """Hold a lock, so that the processes of one job try a path once; go without where none can be had."""
        with contextlib.ExitStack() as held:
            try:
                make_private(self.path.parent)
                file = held.enter_context(self.path.with_suffix(f".{purpose}.lock").open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:
                log.info("rocmend: no lock beside %s: %s", self.path, error)
            yield

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            whole = read_json(self.path, dict[str, Any], max_bytes=_LARGEST_BYTES, what="file of outcomes")
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except DataError as error:
            log.warning("rocmend: %s is made anew: it %s", self.path, error.message)
            return {}
        machines = whole.get("machines") if whole.get("schema") == _SCHEMA else None
        if not isinstance(machines, dict):
            return {}
        return {
            key: value
            for key, value in machines.items()
            if isinstance(value, dict) and isinstance(value.get("outcomes"), dict)
        }


def machine_key(machine: Mapping[str, str]) -> str:
    """Return a short hash of what defines a machine and its software."""
    return hashlib.sha256(json.dumps(dict(machine), sort_keys=True).encode()).hexdigest()[:16]
