"""The records that ``rocmend kernels tune`` measured on this machine, in a file of the user's.

The file is ``kernel-tuning.json`` in ROCMEND_HOME, else in ``rocmend`` below XDG_DATA_HOME or ``~/.local/share``. One
that cannot be read, or was written by a later version, is told of once and put aside when a new file is written.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import functools
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import make_private, write_atomic
from rocmend.core.places import data_home
from rocmend.kernels import caches
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.config import Config, Value
from rocmend.kernels.tuning.record import Record, triton_version

log = logging.getLogger("rocmend.kernels")

SCHEMA = 1
FILE_NAME = "kernel-tuning.json"
_LARGEST_BYTES = 16 << 20
_KEYS = {
    "records": ("op", "kernel", "class", "target", "triton"),
    "choices": ("op", "class", "target", "triton", "torch"),
}


def path() -> Path:
    """Return the file of the user's own records."""
    return data_home() / FILE_NAME


@functools.cache
def torch_version() -> str:
    """Return the version of the installed torch without a local part, or ``0``."""
    try:
        return metadata.version("torch").partition("+")[0]
    except metadata.PackageNotFoundError:
        return "0"


def release(version: str) -> str:
    """Return major and minor of a version: what records are kept by."""
    return ".".join(version.split(".")[:2])


@functools.cache
def _content() -> dict[str, list[dict[str, Any]]]:
    """Read the file, once per process."""
    found, problem = read(path())
    if problem:
        log.warning("the tuning records in %s are not used: %s", path(), problem)
    return found


def read(file: Path) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Return the rows of a file by section, and what is the matter with it (empty where nothing is)."""
    empty: dict[str, list[dict[str, Any]]] = {"records": [], "choices": []}
    try:
        whole = read_json(file, dict[str, Any], max_bytes=_LARGEST_BYTES, what="file of tuning records")
    except FileNotFoundError:
        return empty, ""
    except (OSError, DataError) as error:
        return empty, f"it cannot be read ({error})"
    if not isinstance(whole.get("schema"), int):
        return empty, "it is not a tuning-record file"
    if whole["schema"] != SCHEMA:
        return empty, f"it was written by another version of rocmend (schema {whole['schema']}, this one has {SCHEMA})"
    for section, keys in _KEYS.items():
        rows = whole.get(section, [])
        good = rows if isinstance(rows, list) else []
        empty[section] = [row for row in good if _sound(row, keys)]
    return empty, ""


def _sound(row: Any, keys: tuple[str, ...]) -> bool:
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in keys):
        return False
    if "kernel" in keys:
        config = row.get("config")
        return isinstance(config, dict) and all(
            isinstance(name, str) and isinstance(value, int | str | bool) for name, value in config.items()
        )
    return isinstance(row.get("implementation"), str)


@functools.cache
def user_records(op: str) -> tuple[Record, ...]:
    """Return the records of this machine for an op, that were measured with the Triton in use."""
    now = release(triton_version())
    return tuple(
        Record(
            row["kernel"],
            row["class"],
            row["target"],
            "",
            Config(row["config"], source(row), f"{path()}: {op}/{row['kernel']}"),
        )
        for row in _content()["records"]
        if row["op"] == op and release(row["triton"]) == now
    )


def source(row: Mapping[str, Any]) -> str:
    """Return the source of a record: device, date and versions."""
    versions = f"Triton {row['triton']}" + (f", torch {row['torch']}" if row.get("torch") else "")
    return f"run: {row.get('device', 'this machine')}, {row.get('date', '')}, {versions}"


def measured_choice(op: str, shape_class: str, target: Target) -> str | None:
    """Return the implementation that was measured to be the fastest here, with the same torch and Triton, or None."""
    rows = _content()["choices"]
    if not rows:
        return None
    wanted = (op, shape_class, target.name, release(triton_version()), release(torch_version()))
    for row in rows:
        if (row["op"], row["class"], row["target"], release(row["triton"]), release(row["torch"])) == wanted:
            return str(row["implementation"])
    return None


def keep_record(
    op: str, kernel: str, shape_class: str, target: str, config: Mapping[str, Value], **evidence: Any
) -> None:
    """Keep a record, in place of that for the same op, kernel, class, target and Triton."""
    row = {"op": op, "kernel": kernel, "class": shape_class, "target": target, "triton": triton_version()}
    _keep("records", {**row, "torch": torch_version(), "config": dict(config), "date": _today(), **evidence})


def keep_choice(op: str, shape_class: str, target: str, implementation: str, **evidence: Any) -> None:
    """Keep which implementation was the fastest, in place of that for the same op, class, target, Triton and torch."""
    row = {"op": op, "class": shape_class, "target": target, "triton": triton_version(), "torch": torch_version()}
    _keep("choices", {**row, "implementation": implementation, "date": _today(), **evidence})


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


def _keep(section: str, row: dict[str, Any]) -> None:
    def change(content: dict[str, list[dict[str, Any]]]) -> None:
        key = [release(row[name]) if name in {"triton", "torch"} else row[name] for name in _KEYS[section]]
        content[section] = [
            row
            for row in content[section]
            if [release(row[name]) if name in {"triton", "torch"} else row[name] for name in _KEYS[section]] != key
        ]
        content[section].append(row)

    update(path(), change)
    forget()


def update(file: Path, change: Callable[[dict[str, list[dict[str, Any]]]], None]) -> None:
    """Change a file of records under a lock; a file that could not be read is put aside first.

    Raises:
        OSError: It cannot be written.
    """
    make_private(file.parent)
    with _locked(file):
        content, problem = read(file)
        if problem:
            aside = _aside(file)
            file.rename(aside)
            log.warning("%s is put aside as %s: %s", file, aside.name, problem)
        change(content)
        write_atomic(file, json.dumps({"schema": SCHEMA, **content}, indent=1) + "\n", private=True)


def _aside(file: Path) -> Path:
    number = 1
    while (other := file.with_name(f"{file.stem}.aside-{number}{file.suffix}")).exists():
        number += 1
    return other


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        try:
            handle = held.enter_context(file.with_suffix(".lock").open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            log.info("no lock beside %s: %s", file, error)
        yield


def forget() -> None:
    """Drop what was read: the file changed."""
    _content.cache_clear()
    user_records.cache_clear()
    caches.forget()
