from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.probe.diff import diff, load_group
from rocmend.probe.matrix import SEVERITY, matrix_of
from rocmend.store.store import Store

Make = Callable[..., Evidence]


def test_every_verdict_has_its_rank() -> None:
    assert set(SEVERITY) == set(Verdict)


def test_the_matrix_says_what_works_and_what_does_not(evidence: Make) -> None:
    matrix = matrix_of(
        [
            evidence("a:float32"),
            evidence("b:float32", Verdict.WRONG_OUTPUT),
            evidence("b:float16", Verdict.SKIPPED),
            evidence("c:float32", Verdict.HANG),
            evidence("d:float32", family="fft"),
            evidence("e:float32", Verdict.SKIPPED, family="graphs"),
        ]
    )
    assert matrix.works == ("fft",)
    assert matrix.broken == ("matmul",)
    row = next(row for row in matrix.rows if row.family == "matmul")
    assert (row.cells["float32"].worst, row.cells["float32"].passed, row.cells["float32"].count) == (Verdict.HANG, 1, 3)
    assert row.cells["float16"].count == 0
    assert [result.subject for result in row.failed] == ["c:float32", "b:float32"]
    assert matrix.dtypes == ("float32", "float16")
    assert matrix.verdicts == {"hang": 1, "wrong-output": 1, "pass": 2, "skipped": 2}


def _by_subject(*results: Evidence) -> dict[str, Evidence]:
    return {result.subject: result for result in results}


def test_what_changed_is_told_by_kind(evidence: Make) -> None:
    before = _by_subject(
        evidence("broken:float32"),
        evidence("fixed:float32", Verdict.HANG),
        evidence("other:float32", Verdict.HANG),
        evidence("same:float32", steady_ms=1.0),
        evidence("still:float32", Verdict.HANG),
        evidence("slower:float32", steady_ms=1.0),
        evidence("noise:float32", steady_ms=0.01),
        evidence("worse:float32", comparison={"max_rel_error": 1e-6}),
        evidence("gone:float32"),
    )
    after = _by_subject(
        evidence("broken:float32", Verdict.CRASH, group="b"),
        evidence("fixed:float32", group="b"),
        evidence("other:float32", Verdict.CRASH, group="b"),
        evidence("same:float32", steady_ms=1.2, group="b"),
        evidence("still:float32", Verdict.HANG, group="b"),
        evidence("slower:float32", steady_ms=3.0, group="b"),
        evidence("noise:float32", steady_ms=0.05, group="b"),
        evidence("worse:float32", comparison={"max_rel_error": 1e-4}, group="b"),
        evidence("new:float32", group="b"),
    )
    found = diff(before, after)
    assert [(change.subject.partition(":")[0], change.kind) for change in found.changes] == [
        ("broken", "broken"),
        ("other", "verdict"),
        ("fixed", "fixed"),
        ("worse", "error"),
        ("slower", "time"),
    ]
    assert found.changes[-1].time_ratio == pytest.approx(3.0)
    assert found.same == 3
    assert found.worse
    assert (found.only_before, found.only_after) == (("gone:float32",), ("new:float32",))
    assert (found.before.group, found.after.group) == ("probe-a", "b")


def test_no_change_is_no_change(evidence: Make) -> None:
    results = _by_subject(evidence("a:float32"))
    found = diff(results, results)
    assert (found.changes, found.same, found.worse) == ((), 1, False)


def test_groups_come_from_the_store(evidence: Make, tmp_path: Path) -> None:
    with Store.open(tmp_path / "evidence.sqlite") as store:
        store.add(evidence("a:float32", group="probe-1"))
        store.add(evidence("b:float32", group="probe-2"))
        assert list(load_group(store, "probe-1")) == ["a:float32"]
        assert len(load_group(store, "last")) == 1
        assert list(load_group(store, "probe-2")) == ["b:float32"]
        with pytest.raises(UsageError, match="several runs begin with 'probe'"):
            load_group(store, "probe")
        with pytest.raises(UsageError, match="probe-3"):
            load_group(store, "probe-3")
