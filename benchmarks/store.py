"""Time the searches that reports make, in a store of many records: ``python benchmarks/store.py FOLDER [COUNT]``.

The folder's store is made where it is not there. A million records of about 2 KB take 2.4 GB and some minutes.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.store.encoding import encode_evidence
from rocmend.store.ids import IdMaker
from rocmend.store.store import Store

KINDS = ("bench", "probe", "trial")
TARGETS = ("gfx1151", "gfx942", "gfx1100", "cpu", "sm_90")
GROUP = 300
"""Records of a group."""


def records(count: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows as the store has them."""
    maker, start = IdMaker(), dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    measured = {"blocks": [[0.0012345] * 20] * 5}
    for number in range(count):
        time_of = start + dt.timedelta(seconds=20 * number)
        kind, verdict = KINDS[number % 3], Verdict.HANG if number % 11 == 0 else Verdict.PASS
        record = Evidence(
            kind=kind,
            subject=f"gemm/{number % 97}",
            identity=f"{number % 5000}",
            verdict=verdict,
            reason="a reason",
            started_at=time_of.isoformat(),
            time_ms=12.5,
            gfx_target=TARGETS[number % 5],
            versions={"torch": "2.13", "hip": "7.1"},
            settings={"device": "cuda:0"},
            detail={"measured": measured},
            group=f"{kind}-{number // GROUP:06d}",
        )
        names = record.kind, record.subject, record.identity, record.verdict.value, record.gfx_target
        yield (maker.make(time_of), *names, None, record.group, encode_evidence(record))


def fill(path: Path, count: int) -> None:
    """Make the store; not through ``add``, which waits for the disk after each record."""
    Store.open(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA synchronous=OFF")
    with database:
        database.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", records(count))
    database.close()


def main() -> None:
    """Fill where needed, then print each search's best time of three."""
    path = Path(sys.argv[1]) / "evidence.sqlite"
    if not path.exists():
        fill(path, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
    with Store.open(path) as store:
        group = store.last_group("bench-") or ""
        searches: dict[str, Callable[[], Any]] = {
            "the newest 50": lambda: list(store.query(limit=50)),
            "the newest 50 of a kind": lambda: list(store.query(kind="bench", limit=50)),
            "a group": lambda: list(store.query(group=group)),
            "what hung on a target, 50": lambda: list(
                store.query(kind="probe", gfx_target="gfx942", verdict=Verdict.HANG, limit=50)
            ),
            "repeats of a run": lambda: list(store.repeats("77")),
            "a subject, all": lambda: list(store.query(subject="gemm/5")),
            "kinds": store.kinds,
            "all groups": store.group_names,
            "the newest 50 groups, counted": lambda: store.groups(50),
            "all groups, counted": store.groups,
            "the last run of a suite": lambda: store.last_group("probe-"),
        }
        for name, search in searches.items():
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                found = search()
                times.append(time.perf_counter() - begin)
            count = len(found) if isinstance(found, list) else 1
            print(f"{name:30} {min(times) * 1e3:8.1f} ms  {count:6} found")


if __name__ == "__main__":
    main()
