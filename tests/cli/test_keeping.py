"""Durations that are kept are right whatever becomes of the wall clock."""

from __future__ import annotations

import ast
import datetime as dt
from pathlib import Path

import pytest

import rocmend
from rocmend.cli import keeping

SOURCES = Path(rocmend.__file__).parent
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}


def _reads_the_wall_clock(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Call) and ".".join(ast.unparse(one.func).split(".")[-2:]) in WALL for one in ast.walk(node)
    )


def test_a_clock_that_is_set_changes_no_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    class Moved(dt.datetime):
        days = 0

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Moved:
            return cls.fromtimestamp(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp() + 86400 * cls.days, tz)

    monkeypatch.setattr("rocmend.cli.keeping.dt.datetime", Moved)
    begun = keeping.Begun()
    Moved.days = 1
    assert begun.started_at == "2026-01-01T00:00:00.000+00:00"
    assert begun.time_ms() < 10_000


def test_no_duration_is_measured_with_the_wall_clock() -> None:
    found = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        if ".now(" not in text and "time.time" not in text and ".utcnow(" not in text and ".today(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _reads_the_wall_clock(node):
                written = ast.unparse(node.right)
                if "timedelta" in written or "st_mtime" in written:  # what `--since 3d` means; the age of a file
                    continue
                found.append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    assert found == []
