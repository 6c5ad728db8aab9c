"""Writers that are killed at any moment, and many at once: whatever was acknowledged is there, and whole."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import RocmendError
from rocmend.core.evidence import Evidence
from rocmend.store import database
from rocmend.store.artifacts import LARGE_BYTES
from rocmend.store.errors import StoreError
from rocmend.store.schema import STEPS
from rocmend.store.store import Store

Make = Callable[..., Any]

KILLS = 240
STORES = 8

SAME = [random.Random(seed).randbytes(1 << 20) for seed in range(12)]  # noqa: S311  not a secret
"""Contents that come again: one that a killed writer left torn under its name would be taken for whole."""


def forked(function: Callable[[], object]) -> int:
    """Start a function in a child; it exits with 0 where the function returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    return child


def write_for_ever(path: Path, report: int, make: Make, machine: Any) -> None:
    """Add, remove and collect, and tell each id once it is promised; never returns."""
    dice = random.Random(os.urandom(8))  # noqa: S311  not a secret
    with Store.open(path) as store:
        while True:
            size_bytes = dice.choice((0, 10, 3000, LARGE_BYTES, 10 * LARGE_BYTES))
            artifacts = {"output.log": os.urandom(size_bytes), "same": dice.choice(SAME)}
            record_id = store.add(make(subject="keep"), machine=machine, artifacts=artifacts)
            os.write(report, f"{record_id}\n".encode())
            if dice.random() < 0.3:
                store.remove([store.add(make(subject="drop"), artifacts={"x": os.urandom(100)})])
            if dice.random() < 0.2:
                store.gc()


@pytest.mark.slow
def test_kill_at_any_moment_loses_nothing(tmp_path: Path, evidence: Make, machine: Make) -> None:
    dice = random.Random(7)  # noqa: S311  not a secret
    snapshot, kept = machine(kernel__release="6.17"), 0
    life_s = max(0.04, 5 * time_of_an_addition(tmp_path / "timed", evidence()))  # also on a slow or busy disk
    for number in range(STORES):
        path = tmp_path / str(number) / "evidence.sqlite"
        promised: set[str] = set()
        for _ in range(KILLS // STORES):
            read_end, write_end = os.pipe()
            child = forked(lambda p=path, w=write_end: write_for_ever(p, w, evidence, snapshot))  # type: ignore[misc]
            os.close(write_end)
            time.sleep(dice.uniform(0, life_s))
            os.kill(child, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            with os.fdopen(read_end) as lines:
                promised.update(line.rstrip("\n") for line in lines if line.endswith("\n"))
        kept += check_whole(path, promised)
    assert kept > STORES  # they lived long enough to write


def time_of_an_addition(path: Path, record: Evidence) -> float:
    with Store.open(path) as store:
        start = time.monotonic()
        for number in range(3):
            store.add(record, artifacts={"a": SAME[number]})
        return (time.monotonic() - start) / 3


def check_whole(path: Path, promised: set[str]) -> int:
    """Compare a store with what its writers promised; returns the number of records."""
    with Store.open(path) as store:
        assert store.verify() == []
        found = {item.id: item.evidence for item in store.query(subject="keep")}
        assert promised <= set(found)
        for record in found.values():
            assert {artifact.name for artifact in record.artifacts} == {"output.log", "same"}
            assert store.machine(record.machine).value("kernel.release") == "6.17"
        store.gc()
        assert store.verify() == []
        referenced = {artifact.sha256 for item in store.query() for artifact in item.evidence.artifacts}
        assert {held.sha256 for held in store._artifacts.walk()} == referenced
        return len(found)


@pytest.mark.slow
def test_kill_while_the_store_is_made_leaves_one_that_can_be_used(tmp_path: Path, evidence: Make) -> None:
    dice = random.Random(5)  # noqa: S311  not a secret
    stages = set()
    for number in range(80):
        path = tmp_path / str(number) / "evidence.sqlite"
        child = forked(lambda p=path: Store.open(p))  # type: ignore[misc]
        time.sleep(dice.uniform(0, 0.008))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        stages.add(path.stat().st_size if path.exists() else None)
        with Store.open(path) as store:
            store.add(evidence())
            assert store.verify() == []
    assert len(stages) > 1


@pytest.mark.slow
def test_kill_while_upgrading_loses_nothing(tmp_path: Path, evidence: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        ids = [store.add(evidence(detail={"x": "y" * 2000})) for _ in range(30)]
    old = path.read_bytes()
    fill = "UPDATE evidence SET record = record || ' '"
    monkeypatch.setattr(database, "STEPS", (*STEPS, ("ALTER TABLE evidence ADD COLUMN note TEXT", *[fill] * 10)))
    dice = random.Random(3)  # noqa: S311  not a secret
    upgraded = 0
    for _ in range(60):
        child = forked(lambda: Store.open(path))
        time.sleep(dice.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with Store.open(path) as store:
            assert sorted(item.id for item in store.query()) == sorted(ids)
            assert store.verify() == []
        upgraded += any(tmp_path.glob("*.bak"))
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(old)
    assert upgraded > 10


def test_writers_at_once_lose_nothing(tmp_path: Path, evidence: Make, machine: Make) -> None:
    path, snapshot = tmp_path / "new" / "evidence.sqlite", machine(kernel__release="6.17")

    def write(number: int) -> None:
        with Store.open(path) as store:  # they also race to make it
            for turn in range(20):
                artifacts = {"output.log": f"{number} {turn}".encode(), "same": b"same"}
                store.add(evidence(subject="keep"), machine=snapshot, artifacts=artifacts)

    def collect() -> None:
        with Store.open(path) as store:
            for _ in range(20):
                store.remove([store.add(evidence(subject="drop"), artifacts={"same": b"same"})])
                store.gc()
                assert store.verify() == []

    children = [forked(lambda n=number: write(n)) for number in range(8)] + [forked(collect)]  # type: ignore[misc]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 9
    assert check_whole(path, set()) == 160


def test_threads_share_a_store(store: Store, evidence: Make) -> None:
    errors: list[RocmendError] = []

    def use(number: int) -> None:
        try:
            for _ in range(20):
                store.add(evidence(subject=str(number)), artifacts={"a": str(number).encode()})
                list(store.query(subject=str(number), limit=3))
        except RocmendError as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(list(store.query())) == 80
    assert store.verify() == []


def test_a_forked_child_gets_a_connection_of_its_own(
    store: Store, evidence: Make, in_child: Callable[..., int]
) -> None:
    store.add(evidence(subject="before"))
    own = store._session._connection

    def child() -> None:
        store.add(evidence(subject="child"))
        assert store._session._connection is not own
        store.close()

    assert in_child(child) == 0
    store.add(evidence(subject="after"))
    assert store._session._connection is own
    assert sorted(item.evidence.subject for item in store.query()) == ["after", "before", "child"]
    assert store.verify() == []


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Have another process hold the write lock."""
    ready, go_on = os.pipe(), os.pipe()

    def hold() -> None:
        with Store.open(path) as other, other._session.transaction():
            os.write(ready[1], b".")
            os.read(go_on[0], 1)

    child = forked(hold)
    os.read(ready[0], 1)
    try:
        yield
    finally:
        os.write(go_on[1], b".")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for end in (*ready, *go_on):
            os.close(end)


def test_reading_does_not_wait_and_writing_gives_up_in_words(
    tmp_path: Path, evidence: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        record_id = store.add(evidence())
        with held(path):
            assert [item.id for item in store.query()] == [record_id]
            with pytest.raises(StoreError, match="Another process holds the store's lock"):
                store.add(evidence(), artifacts={"a": b"1"})
        store.add(evidence(), artifacts={"a": b"1"})
        assert len(list(store.query())) == 2


def test_collecting_waits_for_writers_and_gives_up_in_words(
    store: Store, evidence: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocmend.store.store.BUSY_S", 0.05)
    store.add(evidence())
    with (
        store._place.locked(alone=False, time_limit_s=1),
        pytest.raises(StoreError, match="Another process holds the store's lock"),
    ):
        store.gc()
    assert store.gc().artifacts == 0
