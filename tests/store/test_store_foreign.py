"""A database that somebody else filled: values of any size and type are errors in a sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.errors import RocmendError
from rocmend.core.evidence import Evidence
from rocmend.machine.facts import Machine
from rocmend.store import database
from rocmend.store.store import Store


@pytest.fixture
def filled(tmp_path: Path, evidence: Callable[..., Evidence], machine: Callable[..., Machine]) -> tuple[Path, str, str]:
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        added = store.add(evidence(), machine=machine(a=1))
        (hash_,) = store._session.rows("SELECT hash FROM machine")[0]
    return path, added, hash_


def change(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "value", ["zeroblob(10)", "x'7b7d'", "7", "1.5", "CAST(x'7b2261223a22ff227d' AS TEXT)", "'{'", "''"]
)
def test_values_of_other_types_are_refused(filled: tuple[Path, str, str], value: str) -> None:
    path, record, machine = filled
    change(path, f"UPDATE evidence SET record = {value}")  # noqa: S608  our own words
    change(path, f"UPDATE machine SET snapshot = {value}")  # noqa: S608  our own words
    with Store.open(path) as store:
        for read in (lambda: store.get(record), lambda: list(store.query()), lambda: store.machine(machine)):
            with pytest.raises(RocmendError) as caught:
                read()
            assert caught.value.message


def test_a_value_that_no_record_has_is_not_read(filled: tuple[Path, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, record, machine = filled
    change(path, "UPDATE evidence SET record = CAST(zeroblob(2000000) AS TEXT)")
    change(path, "UPDATE machine SET snapshot = zeroblob(2000000)")
    monkeypatch.setattr(database, "MAX_VALUE_BYTES", 1_000_000)
    with Store.open(path) as store:
        for read in (lambda: store.get(record), lambda: store.machine(machine)):
            with pytest.raises(RocmendError, match="too big"):
                read()
