from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Artifact, Evidence
from rocmend.core.verdict import Verdict
from rocmend.store.encoding import encode_evidence
from rocmend.store.errors import StoreError
from rocmend.store.store import Store

Make = Callable[..., Any]


def test_what_is_added_is_got_back(store: Store, evidence: Make) -> None:
    given = evidence(detail={"error": 1e-3, "shape": [3, 5]}, settings={"env": {"A": "1"}}, group="run-1")
    record_id = store.add(given)
    assert store.get(record_id).evidence == given
    assert store.get(record_id).id == record_id
    assert record_id.startswith("20260301-102030-")


def test_another_opening_sees_it(store: Store, evidence: Make) -> None:
    record_id = store.add(evidence())
    with Store.open(store.path, create=False) as other:
        assert [item.id for item in other.query()] == [record_id]


def test_a_beginning_is_enough_where_it_is_unique(store: Store, evidence: Make) -> None:
    first = store.add(evidence(started_at="2026-03-01T10:00:00Z"))
    second = store.add(evidence(started_at="2026-03-02T10:00:00Z"))
    assert store.get("20260301").id == first
    assert store.get(second).id == second
    with pytest.raises(UsageError, match=rf"several records begin with '2026': {first}, {second}"):
        store.get("2026")


@pytest.mark.parametrize("beginning", ["", "2027", "x", "20260301-102030-zzzzzzzzz"])
def test_no_record_begins_so(store: Store, evidence: Make, beginning: str) -> None:
    store.add(evidence())
    with pytest.raises(UsageError, match="no record"):
        store.get(beginning)


def test_query_yields_the_newest_runs_first_whatever_the_order_of_adding(store: Store, evidence: Make) -> None:
    for day in (3, 1, 2):
        store.add(evidence(subject=str(day), started_at=f"2026-03-0{day}T00:00:00Z"))
    assert [item.evidence.subject for item in store.query()] == ["3", "2", "1"]


def test_records_of_one_millisecond_keep_their_order(store: Store, evidence: Make) -> None:
    for number in range(50):
        store.add(evidence(subject=str(number)))
    assert [item.evidence.subject for item in store.query()] == [str(number) for number in reversed(range(50))]


def test_each_filter_narrows(store: Store, evidence: Make) -> None:
    store.add(evidence(subject="a", verdict=Verdict.HANG, gfx_target="gfx1151", identity="1", group="g"))
    store.add(evidence(subject="b", verdict=Verdict.CRASH, gfx_target="gfx1010", identity="1", kind="trial"))
    store.add(evidence(subject="c", started_at="2026-03-05T00:00:00+02:00"))

    def found(**filters: Any) -> str:
        return "".join(sorted(item.evidence.subject for item in store.query(**filters)))

    assert found() == "abc"
    assert found(kind="trial") == "b"
    assert found(subject="c") == "c"
    assert found(verdict=Verdict.HANG) == "a"
    assert found(verdict=(Verdict.HANG, Verdict.PASS)) == "ac"
    assert found(verdict=()) == ""
    assert found(gfx_target="gfx1010") == "b"
    assert found(identity="1") == "ab"
    assert found(group="g") == "a"
    assert found(since="2026-03-04T22:00:00Z") == "c"
    assert found(since=dt.datetime(2026, 3, 4, 22, 0, 0, 1000, tzinfo=dt.UTC)) == ""
    assert found(until="2026-03-04") == "ab"
    assert found(kind="probe", verdict=Verdict.CRASH) == ""


def test_a_time_that_is_none_is_refused_at_once(store: Store) -> None:
    with pytest.raises(DataError, match="since 'yesterday' is not an ISO time"):
        store.query(since="yesterday")


@pytest.mark.parametrize("limit", [0, 1, 199, 200, 201, 400, 450, 1000])
def test_limit_and_pages(limit: int, many: Store) -> None:
    ids = [item.id for item in many.query(limit=limit)]
    assert len(ids) == min(limit, 450)
    assert ids == sorted(set(ids), reverse=True)
    assert ids == [summary.id for summary in many.summaries()][:limit]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    record = Evidence("probe", "x", "1", Verdict.PASS, "", "2026-01-01T00:00:00Z", 1.0)
    with Store.open(tmp_path_factory.mktemp("many") / "evidence.sqlite") as store:
        with store._session.transaction() as database:  # one commit, not 450
            for second in range(450):
                started = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=second % 60)
                store._insert(database, record, encode_evidence(record), started)
        yield store


def test_records_added_while_iterating_do_no_harm(
    store: Store, evidence: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocmend.store.store._PAGE_ROWS", 2)
    for number in range(5):
        store.add(evidence(subject=str(number), started_at=f"2026-03-01T00:00:0{number}Z"))
    seen = []
    for item in store.query():
        seen.append(item.evidence.subject)
        store.add(evidence(subject="new", started_at="2026-04-01T00:00:00Z"))
        store.remove([item.id])
    assert seen == ["4", "3", "2", "1", "0"]


def test_kinds_and_the_newest_group_are_found(store: Store, evidence: Make) -> None:
    assert (store.kinds(), store.last_group("probe-")) == ([], None)
    for kind, group in (("trial", "lab-9"), ("probe", "probe-1"), ("bench", "bench-2"), ("probe", "probe-2")):
        store.add(evidence(kind=kind, group=group))
    assert store.kinds() == ["bench", "probe", "trial"]
    assert (store.last_group("probe-"), store.last_group("bench-gemm-")) == ("probe-2", None)


def test_repeats_and_groups_are_counted(store: Store, evidence: Make) -> None:
    for day, verdict in enumerate([Verdict.PASS, Verdict.HANG, Verdict.PASS], 1):
        store.add(evidence(verdict=verdict, group="one", started_at=f"2026-03-0{day}T00:00:00Z"))
    store.add(evidence(identity="other", group="two", started_at="2026-03-02T00:00:00Z"))
    store.add(evidence(identity="other"))
    assert Counter(item.evidence.verdict for item in store.repeats("f00d")) == {Verdict.PASS: 2, Verdict.HANG: 1}
    one, two = store.groups()
    assert (one.group, one.count, one.verdicts) == ("one", 3, {"pass": 2, "hang": 1})
    assert (one.first[:8], one.last[:8]) == ("20260301", "20260303")
    assert (two.group, two.count) == ("two", 1)


def test_a_run_is_named_without_reading_all_of_its_records(store: Store, evidence: Make) -> None:
    store.add(evidence(group="bench-gemm-1"))
    store.add(evidence(group="bench-gemm-1", verdict=Verdict.HANG))
    rows = [(f"{n:026d}", "probe", "a", "1", "pass", "cpu", None, f"probe-{n // 2000}", "{}") for n in range(6000)]
    with store._session.transaction() as database:
        database.executemany("INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    steps: list[int] = []
    with store._session.reading() as database:
        database.set_progress_handler(lambda: steps.append(1), 100)  # each 100 instructions of SQLite
        assert store.group_names() == ["bench-gemm-1", "probe-0", "probe-1", "probe-2"]
        assert (store.group_names("bench-", "shared-"), store.group_names("probe-1")) == (["bench-gemm-1"], ["probe-1"])
        (newest,) = store.groups(limit=1)
        database.set_progress_handler(None, 0)
    assert (newest.group, newest.verdicts) == ("bench-gemm-1", {"pass": 1, "hang": 1})
    assert len(steps) < 20  # 6,000 records are 300 and more
    assert [one.count for one in store.groups()] == [2, 2000, 2000, 2000]


def test_a_machine_is_kept_once(store: Store, evidence: Make, machine: Make) -> None:
    first = store.add(evidence(), machine=machine(kernel__release="6.17", memory__available_bytes=1))
    same = machine(captured_at="2026-03-02T00:00:00+00:00", kernel__release="6.17", memory__available_bytes=2)
    second = store.add(evidence(), machine=same)
    third = store.add(evidence(), machine=machine(kernel__release="6.18"))
    hashes = [store.get(record_id).evidence.machine for record_id in (first, second, third)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert store.machine(hashes[0]).value("kernel.release") == "6.17"
    assert store.machine(hashes[0]).captured_at == "2026-03-01T10:00:00+00:00"
    assert store._session.rows("SELECT COUNT(*) FROM machine") == [(2,)]


def test_a_machine_can_be_named_by_its_hash(store: Store, evidence: Make, machine: Make) -> None:
    content_hash = store.get(store.add(evidence(), machine=machine(a__b=1))).evidence.machine
    assert store.get(store.add(evidence(machine=content_hash))).evidence.machine == content_hash
    with pytest.raises(DataError, match="names the machine 'beef'"):
        store.add(evidence(machine="beef"))
    with pytest.raises(UsageError, match="no machine snapshot 'beef'"):
        store.machine("beef")
    assert len(list(store.query())) == 2


def test_artifacts_come_from_bytes_and_from_files(store: Store, evidence: Make, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"line\n" * 100_000)
    record = store.get(store.add(evidence(), artifacts={"output.log": log, "empty": b"", "small": b"\0\xff"})).evidence
    assert [(item.name, item.size_bytes) for item in record.artifacts] == [
        ("output.log", 500_000),
        ("empty", 0),
        ("small", 2),
    ]
    assert [store.artifact(item.sha256) for item in record.artifacts] == [log.read_bytes(), b"", b"\0\xff"]
    again = store.get(store.add(evidence(artifacts=record.artifacts), artifacts={"more": b"x"})).evidence
    assert [item.name for item in again.artifacts] == ["output.log", "empty", "small", "more"]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".", "a\nb", "a\0b", "x" * 256])
def test_a_name_that_leads_elsewhere_is_refused(store: Store, evidence: Make, name: str) -> None:
    with pytest.raises(UsageError, match="can't be an artifact's name"):
        store.add(evidence(), artifacts={name: b""})
    assert list(store.query()) == []


def test_two_artifacts_of_one_name_are_refused(store: Store, evidence: Make) -> None:
    record = store.get(store.add(evidence(), artifacts={"a": b"1"})).evidence
    with pytest.raises(UsageError, match="two artifacts are called 'a'"):
        store.add(evidence(artifacts=record.artifacts), artifacts={"a": b"2"})


def test_an_artifact_that_is_not_there_is_not_promised(store: Store, evidence: Make) -> None:
    with pytest.raises(DataError, match="names the artifact 'gone'"):
        store.add(evidence(artifacts=(Artifact("gone", "0" * 64, 1),)))


@pytest.mark.parametrize("fields", [{"time_ms": float("nan")}, {"detail": {"x": object()}}, {"started_at": "noon"}])
def test_a_record_that_cannot_be_read_back_is_refused(store: Store, evidence: Make, fields: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        store.add(evidence(**fields))
    assert list(store.query()) == []


def test_a_detail_without_end_is_refused(store: Store, evidence: Make) -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(DataError, match="can't be written as JSON"):
        store.add(evidence(detail=loop))


def test_remove_takes_all_or_none(store: Store, evidence: Make) -> None:
    ids = [store.add(evidence(), artifacts={"a": b"1"}) for _ in range(3)]
    with pytest.raises(UsageError, match="not a whole id"):
        store.remove([ids[0], ids[1][:10]])
    assert len(list(store.query())) == 3
    assert store.remove([*ids[:2], ids[0]]) == 2
    assert [item.id for item in store.query()] == [ids[2]]
    assert store._session.rows("SELECT COUNT(*) FROM artifact") == [(1,)]


def test_a_damaged_record_is_named_and_can_be_removed(store: Store, evidence: Make) -> None:
    good, bad = store.add(evidence()), store.add(evidence(started_at="2027-01-01T00:00:00Z"))
    with store._session.transaction() as database:
        database.execute("UPDATE evidence SET record = '{' WHERE id = ?", (bad,))
    with pytest.raises(DataError, match=f"{bad}.*rocmend store rm {bad}"):
        list(store.query())
    assert [item.subject for item in store.verify()] == [bad]
    assert store.remove([store.find("2027")]) == 1
    assert [item.id for item in store.query()] == [good]


def test_a_record_of_a_newer_version_is_not_misread(store: Store, evidence: Make) -> None:
    record_id = store.add(evidence(schema_version=99))
    with pytest.raises(DataError, match="has version 99"):
        store.get(record_id)


def test_a_closed_store_says_so(tmp_path: Path, evidence: Make) -> None:
    with Store.open(tmp_path / "s") as store:
        pass
    store.close()
    with pytest.raises(StoreError, match="was closed"):
        store.add(evidence())


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no store at .*missing"):
        Store.open(tmp_path / "missing", create=False)
    assert list(tmp_path.iterdir()) == []
