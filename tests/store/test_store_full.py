"""No room: a clear error, nothing that was kept is lost, and it goes on when there is room again."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.store.errors import StoreError
from rocmend.store.store import Store

Make = Callable[..., Any]


def test_a_database_that_may_not_grow(store: Store, evidence: Make) -> None:
    kept = store.add(evidence())
    (pages,) = store._session.rows("PRAGMA page_count")[0]
    store._session.rows(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StoreError, match=r"no space left.*Existing records are safe"):
        store.add(evidence(detail={"x": "y" * 100_000}))
    store._session.rows("PRAGMA max_page_count=1000000")
    more = store.add(evidence(detail={"x": "y" * 100_000}))
    assert {item.id for item in store.query()} == {kept, more}
    assert store.verify() == []


def test_an_artifact_that_may_not_grow(tmp_path: Path, evidence: Make, in_child: Callable[..., int]) -> None:
    def child() -> None:
        with Store.open(tmp_path / "evidence.sqlite") as store:
            store.add(evidence())
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
            with pytest.raises(StoreError, match="no space left"):
                store.add(evidence(), artifacts={"big": os.urandom(2 << 20)})
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            assert list((tmp_path / "artifacts").iterdir()) == []
            store.add(evidence(), artifacts={"big": os.urandom(2 << 20)})
            assert len(list(store.query())) == 2
            assert store.verify() == []

    assert in_child(child) == 0


def test_a_full_disk(small_disk: Path, evidence: Make) -> None:
    kept = []

    def fill(**artifacts: bytes) -> None:
        while True:
            kept.append(store.add(evidence(detail={"x": "y" * 10_000}), artifacts=artifacts))

    with Store.open(small_disk / "evidence.sqlite") as store:
        with pytest.raises(StoreError, match="no space left"):
            fill(noise=os.urandom(1_000_000), more=os.urandom(1_000_000))
        with pytest.raises(StoreError, match="no space left"):
            fill()
        assert len(kept) > 10
        assert sorted(item.id for item in store.query()) == sorted(kept)
        assert store.verify() == []
    with Store.open(small_disk / "evidence.sqlite") as store:
        assert sorted(item.id for item in store.query()) == sorted(kept)
        assert store.verify() == []


def test_a_disk_with_no_room_at_all(small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * ((2 << 20) - 8192))
    with pytest.raises(StoreError):
        Store.open(small_disk / "evidence.sqlite")
    (small_disk / "filler").unlink()
    with Store.open(small_disk / "evidence.sqlite") as store:
        assert store.verify() == []


@pytest.mark.parametrize("log_left", [False, True])
def test_what_is_kept_can_be_read_on_a_full_disk(
    small_disk: Path, evidence: Make, in_child: Callable[..., int], log_left: bool
) -> None:
    path = small_disk / "evidence.sqlite"
    with Store.open(path) as store:
        store.add(evidence())

    def killed() -> None:
        Store.open(path).add(evidence())
        os._exit(0)

    count = 1
    if log_left:
        assert in_child(killed) == 0
        path.with_name("evidence.sqlite-shm").unlink()
        count = 2
    with contextlib.suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as filler:
        while filler.write(b"x" * 4096):
            pass
    with Store.open(path) as store:
        assert len(list(store.query())) == count
        assert store.verify() == []
        with pytest.raises(StoreError, match="no space left"):
            store.add(evidence())
    (small_disk / "filler").unlink()
    with Store.open(path) as store:
        store.add(evidence())
        assert len(list(store.query())) == count + 1
