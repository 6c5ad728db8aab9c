"""What is compared: a run of the store, a run in a file, or one setting of either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from rocmend.bench.case import Setting
from rocmend.bench.records import BenchRun, Measured, measured_of, on_machine
from rocmend.bench.stored import results_of, run_named
from rocmend.core.documents import decode_json, read_document
from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.records import SCHEMA_VERSION
from rocmend.core.suggest import did_you_mean
from rocmend.store.runs import LISTED

if TYPE_CHECKING:
    from rocmend.store.store import Store

T = TypeVar("T")

MAX_BYTES = 256 << 20
_WRITES = "`rocmend bench … --json` writes one."


class Side(msgspec.Struct, frozen=True):
    """One of the two that are compared.

    Attributes:
        label: As it was named.
        results: Its measurements.
        machine: What is known about its machine, by name.
        run: Its id in the store; empty where it is a file.
    """

    label: str
    results: tuple[Measured, ...]
    machine: dict[str, str] = {}
    run: str = ""

    @property
    def named(self) -> str:
        """As it was named, with the id of the run where that is another name."""
        return f"{self.label} ({self.run})" if self.run and not self.label.startswith(self.run) else self.label

    @property
    def suite(self) -> str:
        """The benchmark."""
        return next((item.case.suite for item in self.results), "")

    @property
    def settings(self) -> dict[str, Setting]:
        """Its settings by id."""
        return {item.setting.id: item.setting for item in self.results}

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what ran; several of one package are named together."""
        return _joined(item.subject.versions for item in self.results)

    @property
    def conditions(self) -> dict[str, str]:
        """What its figures depended on besides the settings; several of one name are named together."""
        return _joined(item.told for item in self.results)

    @property
    def device(self) -> str:
        """The devices that it ran on."""
        names = dict.fromkeys(item.subject.named for item in self.results if item.subject.device_name)
        return ", ".join(names)


def _joined(many: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, dict[str, None]] = {}
    for one in many:
        for name, value in one.items():
            found.setdefault(name, {})[value] = None
    return {name: ", ".join(values) for name, values in found.items()}


def read_side(text: str, store: Callable[[], Store]) -> Side:
    """Read what a text names.

    Args:
        text: A file, or a run as ``run_named`` takes it; with ``@SETTING`` one setting of it.
        store: Opens the store, where it is needed.

    Raises:
        UsageError: There is no such run, file or setting.
        DataError: A file holds no run.
    """
    name, _, setting = (text, "", "") if _is_file(text) else text.partition("@")
    side = _file(Path(name)) if _is_file(name) else _run(name, store)
    side = msgspec.structs.replace(side, label=text)
    if not setting:
        return side
    chosen = tuple(item for item in side.results if item.setting.id == setting)
    if not chosen:
        raise UsageError(
            text,
            f"it has no setting {setting!r}.",
            why=did_you_mean(setting, side.settings),
            next_step=f"It has: {', '.join(side.settings)}.",
        )
    return msgspec.structs.replace(side, results=chosen)


def _is_file(text: str) -> bool:
    return bool(text) and Path(text).is_file()


def _run(name: str, store: Callable[[], Store]) -> Side:
    looks_like_file = "/" in name or name.endswith((".json", ".jsonl"))
    if looks_like_file:
        raise UsageError(
            name, "there is no such file.", next_step=f"A run is named by its id, or `last`; `{LISTED}` lists them."
        )
    opened = store()
    group = run_named(opened, name, "compare")
    results, facts = results_of(opened, group)
    if not results:
        raise UsageError(name, f"{group} holds no results that can be read.")
    return Side(group, results, facts, group)


def _file(path: Path) -> Side:
    data = read_document(path, max_bytes=MAX_BYTES)
    if path.suffix == ".jsonl":
        rows = tuple(_row(line, path) for line in data.splitlines() if line.strip())
        if not rows:
            raise DataError(str(path), "is empty.", next_step=_WRITES)
        return Side(str(path), rows)
    try:
        whole = decode_json(data, Any, subject=str(path))
    except DataError as error:
        raise DataError(
            str(path), "holds no run of a benchmark: it is no JSON.", next_step=f"{_WRITES} Pages are not read."
        ) from error
    if not isinstance(whole, dict):
        raise DataError(str(path), "holds no run of a benchmark.", next_step=_WRITES)
    _check_version(whole, path)
    held = whole.get("data", whole)
    if not isinstance(held, dict) or not held.get("results"):
        raise DataError(str(path), "holds no run of a benchmark.", next_step=_WRITES)
    run = _converted(held, BenchRun, path)
    return Side(str(path), on_machine(run.results, run.machine), run.machine)


def _check_version(held: dict[str, Any], path: Path) -> None:
    """Refuse what a newer rocmend wrote: what it means may have changed."""
    version = held.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise DataError(
            str(path),
            f"has schema_version {str(version)[:20]}; this rocmend reads up to {SCHEMA_VERSION}.",
            why="A newer rocmend wrote it, and this one could misread it.",
            next_step="Upgrade rocmend.",
        )


def _row(line: bytes, path: Path) -> Measured:
    """Read a line of ``bench … --format jsonl``, or of ``store ls --format jsonl``."""
    row = decode_json(line, dict[str, Any], subject=str(path))
    _check_version(row["evidence"] if isinstance(row.get("evidence"), dict) else row, path)
    if isinstance(row.get("evidence"), dict):
        return measured_of(_converted(row["evidence"], Evidence, path))
    return _converted(row, Measured, path)


def _converted(value: dict[str, Any], kind: type[T], path: Path) -> T:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise DataError(str(path), f"holds no run of a benchmark: {error}.", next_step=_WRITES) from error
