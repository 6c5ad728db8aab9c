"""Compatibility tables, put together from the cells that entries state."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from rocmend.core.errors import DataError
from rocmend.core.records import Source
from rocmend.core.suggest import unknown
from rocmend.kb.entry import Status
from rocmend.kb.load import Knowledge
from rocmend.kb.versions import parse_version
from rocmend.kb.vocabulary import TABLES

FALLEN = frozenset({Status.SUPERSEDED, Status.REFUTED})
"""Statuses of claims that no longer stand; they are kept, behind those that do."""


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one entry says of one cell.

    Attributes:
        state: full, preview, partial, experimental, override, none or unknown.
        note: A few words.
        entry_id: The entry.
        status: The entry's status.
        sources: The entry's sources.
    """

    state: str
    note: str
    entry_id: str
    status: Status
    sources: tuple[Source, ...]

    @property
    def stands(self) -> bool:
        """Whether the claim is neither superseded nor refuted."""
        return self.status not in FALLEN


class MatrixCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every claim about one cell, those that stand first.

    Attributes:
        claims: What entries say; at least one.
        contradictory: Claims that stand differ in their state.
    """

    claims: tuple[Claim, ...]
    contradictory: bool = False


class Matrix(msgspec.Struct, frozen=True):
    """A compatibility table.

    Attributes:
        table: release, library or pytorch-source.
        rows: In order of version or name.
        targets: Columns, in order of target.
        cells: Row to target to cell; a cell that no entry speaks of is absent.
    """

    table: str
    rows: tuple[str, ...]
    targets: tuple[str, ...]
    cells: Mapping[str, Mapping[str, MatrixCell]]

    def cell(self, row: str, target: str) -> MatrixCell | None:
        """Return a cell, or None where no entry speaks of it."""
        return self.cells.get(row, {}).get(target)


def build_matrix(knowledge: Knowledge, table: str) -> Matrix:
    """Return a table of everything that entries say of its cells.

    Args:
        knowledge: The entries.
        table: release, library or pytorch-source.

    Raises:
        UsageError: There is no such table.
    """
    if table not in TABLES:
        raise unknown("matrix", "table", table, sorted(TABLES))
    claims: dict[str, dict[str, list[Claim]]] = {}
    for entry in knowledge.entries.values():
        for cell in entry.cell:
            if cell.table == table:
                claim = Claim(cell.state, cell.note, entry.id, entry.status, entry.source)
                claims.setdefault(cell.row, {}).setdefault(cell.target, []).append(claim)
    rows = sorted(claims, key=_row_key)
    targets = sorted({target for row in claims.values() for target in row}, key=_target_key)
    cells = {row: {target: _cell(claims[row][target]) for target in targets if target in claims[row]} for row in rows}
    return Matrix(table, tuple(rows), tuple(targets), cells)


def _cell(claims: list[Claim]) -> MatrixCell:
    ordered = sorted(claims, key=lambda claim: (not claim.stands, claim.entry_id))
    return MatrixCell(tuple(ordered), contradictory=len({claim.state for claim in ordered if claim.stands}) > 1)


def _row_key(row: str) -> tuple[str, int, object, str]:
    """Order rows by the words before a version, then by the version: ROCm 7.2 before ROCm 7.10."""
    match = re.search(r"\d+(?:\.\d+)*\S*", row)
    if match is not None:
        try:
            return row[: match.start()].casefold(), 1, parse_version(match[0]), row
        except DataError:
            pass
    return row.casefold(), 0, 0, row


def _target_key(target: str) -> tuple[int, int, int, int, str]:
    """Order targets as LLVM numbers them: gfx908, gfx90a, gfx942, gfx1030; a generic class before its members."""
    match = re.match(r"gfx(\d+)(?:-(\d+))?-generic", target)
    if match is not None:
        return int(match[1]), int(match[2] or -1), -1, -1, target
    match = re.fullmatch(r"gfx(\d+)([0-9a-f])([0-9a-f])", target)
    if match is None:
        return 1 << 30, 0, 0, 0, target
    return int(match[1]), int(match[2], 16), int(match[3], 16), 0, target
