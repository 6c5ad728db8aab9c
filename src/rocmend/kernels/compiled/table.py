"""The table of compiled kernels: its rows, the file it is kept in, and what changed since."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from rocmend.core.documents import MALFORMED, read_json
from rocmend.core.errors import DataError
from rocmend.core.outputs import write_named
from rocmend.kernels.compiled.checks import Finding
from rocmend.kernels.compiled.measure import Measured

SCHEMA = 1
_MAX_BYTES = 256 << 20


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One specialisation of a kernel on one target.

    Attributes:
        op: The op.
        kernel: The Triton function's name.
        identity: Of the specialisation: stays when the source or Triton changes.
        case: The first case of the suite that launches it.
        record: ``op/kernel/class@target`` of the tuning record.
        config: Its parameters, as ``BLOCK=64 num_warps=4``.
        target: The target.
        triton: Version that compiled it.
        measured: Figures; None where it was not compiled.
        findings: What is wrong with it.
    """

    op: str
    kernel: str
    identity: str
    case: str
    record: str
    config: str
    target: str
    triton: str
    measured: Measured | None
    findings: tuple[Finding, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other rows."""
        return self.op, self.kernel, self.target, self.identity


_ROW, _FIGURES = Row.__struct_fields__, Measured.__struct_fields__
_ROUGHLY = {"code_bytes": 0.01}
"""By what part a figure may differ and is the same: LLVM's choices are not all alike from one process to the next (once
in some twenty runs a kernel of 6,716 bytes had 6,712)."""
_COUNTS = frozenset(name for name, kind in Measured.__annotations__.items() if str(kind).startswith("dict"))


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: names of the values of a row, and of its figures, then the rows."""

    schema: Literal[1]
    columns: tuple[str, ...]
    figures: tuple[str, ...]
    rows: list[list[Any]]


class Difference(msgspec.Struct, frozen=True):
    """How a row differs from the kept row.

    Attributes:
        op: The op.
        kernel: The kernel.
        case: The case.
        target: The target.
        change: ``new``, ``gone``, or what changed, as ``vgprs 64 → 72``.
    """

    op: str
    kernel: str
    case: str
    target: str
    change: str


def write_table(path: Path, rows: Iterable[Row]) -> None:
    """Write rows to a file, a row per line, so that a change shows as few lines; without names, so that it is short.

    For the same reason a count of nothing is 0, and a record's name lacks the op's where it is the row's.
    """
    header = msgspec.json.encode({"schema": SCHEMA, "columns": _ROW, "figures": _FIGURES}).decode()
    lines = [msgspec.json.encode(_flat(row)).decode() for row in rows]
    write_named(path, header[:-1] + ',"rows":[\n' + ",\n".join(lines) + "\n]}\n")


def merged(kept: Iterable[Row], made: Sequence[Row], ops: Sequence[str], target_names: Sequence[str]) -> list[Row]:
    """Replace the rows of some ops and targets in a table, in the order of ops, then of targets.

    Args:
        kept: Rows of the file.
        made: Rows just made.
        ops: What they are of, even if an op has no rows any more.
        target_names: The targets compiled for.
    """
    others = [row for row in kept if row.op not in ops or row.target not in target_names]
    order = {name: at for at, name in enumerate(dict.fromkeys((*(row.target for row in kept), *target_names)))}
    return sorted([*others, *made], key=lambda row: (row.op, order[row.target]))


def _flat(row: Row) -> list[Any]:
    plain = msgspec.to_builtins(row)
    if row.measured is not None:
        plain["measured"] = [plain["measured"][name] or 0 for name in _FIGURES]
    plain["record"] = re.sub(f"^{row.op}/", "/", row.record)
    return [plain[name] for name in _ROW]


def read_table(path: Path) -> tuple[Row, ...]:
    """Read a file that ``write_table`` wrote.

    Raises:
        DataError: It is none.
    """
    try:
        file: _File = read_json(path, _File, max_bytes=_MAX_BYTES, what="table of compiled kernels")
        return tuple(msgspec.convert(_named(flat, file), Row) for flat in file.rows)
    except (OSError, TypeError, *MALFORMED) as error:
        raise DataError(str(path), f"is no table of compiled kernels: {error}.") from error


def _named(flat: list[Any], file: _File) -> dict[str, Any]:
    row = dict(zip(file.columns, flat, strict=True))
    if row.get("measured") is not None:
        figures = dict(zip(file.figures, row["measured"], strict=True))
        row["measured"] = {name: {} if name in _COUNTS and value == 0 else value for name, value in figures.items()}
    row["record"] = f"{row['op']}{row['record']}" if row["record"].startswith("/") else row["record"]
    return row


def differences(kept: Sequence[Row], made: Sequence[Row], *, whole: bool) -> list[Difference]:
    """Compare rows with the kept ones.

    Args:
        kept: Rows of the file.
        made: Rows just made.
        whole: ``made`` holds all rows of its ops and targets: a kept row that is missing is gone.
    """
    before = {row.key: row for row in kept}
    found = [
        Difference(row.op, row.kernel, row.case, row.target, change)
        for row in made
        if (change := _change(before.get(row.key), row))
    ]
    if whole:
        covered = {(row.op, row.target) for row in made}
        there = {row.key for row in made}
        found += [
            Difference(row.op, row.kernel, row.case, row.target, "gone")
            for row in kept
            if (row.op, row.target) in covered and row.key not in there
        ]
    return found


def _change(before: Row | None, now: Row) -> str:
    if before is None:
        return "new"
    if before.triton != now.triton:
        return f"triton {before.triton} → {now.triton}"
    if before.measured is None or now.measured is None:
        if (before.measured is None) != (now.measured is None):
            return "compiles now" if before.measured is None else "no longer compiles"
        return ""
    kept, other = msgspec.to_builtins(before.measured), msgspec.to_builtins(now.measured)
    return ", ".join(
        f"{name} {kept[name]} → {other[name]}" for name in kept if not _same(name, kept[name], other[name])
    )


def _same(name: str, kept: Any, other: Any) -> bool:
    return bool(abs(kept - other) <= _ROUGHLY[name] * kept) if name in _ROUGHLY else bool(kept == other)
