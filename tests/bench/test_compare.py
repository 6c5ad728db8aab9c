"""Runs, files and settings are matched by case: faster, slower, no difference, or incomparable and why."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.compare import Changed, changes_between, run_data
from rocmend.bench.comparison import compared, overall
from rocmend.bench.records import BEFORE, BenchRun, Measured, evidence_of, measured_of, row_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.sides import Side, read_side
from rocmend.bench.stats import Difference, summarize
from rocmend.cli.views.compare import junit_suite
from rocmend.core.errors import DataError, UsageError
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

Make = Callable[..., Measured]
HERE = Subject("gfx1151", "cuda:0", "Radeon 8060S", {"torch": "2.11"})


@pytest.fixture
def measured() -> Make:
    """Make a measurement of a case: blocks around so many seconds, with 0.5 % noise."""
    draw = random.Random(11)  # noqa: S311  it draws samples

    def make(
        name: str,
        seconds: float | None,
        setting: Setting = DEFAULT,
        *,
        subject: Subject = HERE,
        work: float = 4e12,
        started: str = "2026-01-01T00:00:00.000+00:00",
    ) -> Measured:
        verdict = Verdict.PASS if seconds else Verdict.WRONG_OUTPUT
        prepared = Prepared(verdict, "" if seconds else "error 0.5", 0.1, subject=subject)
        blocks = tuple((seconds * (1 + draw.gauss(0, 0.005)),) * 3 for _ in range(10)) if seconds else ()
        summary = summarize(blocks) if blocks else None
        case = Case(f"gemm/{name}", "gemm", {"m": 8}, "TFLOPS", work)
        return Measured(case, verdict, prepared.reason, prepared, blocks, summary, started, 1.0, setting)

    return make


LATER = "2026-01-02T00:00:00.000+00:00"


def changed(a: Sequence[Measured], b: Sequence[Measured], *, limit: float = 0.05, across: bool = False) -> Changed:
    return changes_between(Side("A", tuple(a)), Side("B", tuple(b)), limit=limit, across=across)


def test_each_case_is_faster_slower_or_neither(measured: Make) -> None:
    a = [measured(name, 1.0) for name in ("same", "slow", "little", "fast", "lost", "gone")]
    seconds = {"same": 1.0, "slow": 1.2, "little": 1.04, "fast": 0.8, "lost": None, "new": 1.0}
    b = [measured(name, value, started=LATER) for name, value in seconds.items()]
    found = changed(a, b)
    by = {change.case.removeprefix("gemm/"): change for change in found.changes}
    assert {name: change.comparison.difference.value for name, change in by.items()} == {
        "same": "no difference shown",
        "slow": "slower",
        "little": "slower",
        "fast": "faster",
        "lost": "incomparable",
    }
    assert by["slow"].comparison.ratio == pytest.approx(1 / 1.2, rel=0.02)
    assert {change.case for change in found.worse} == {"gemm/slow", "gemm/lost"}
    assert by["lost"].comparison.reason == "B: wrong-output: error 0.5"
    assert (found.only_a, found.only_b) == (("gemm/gone",), ("gemm/new",))
    assert changed(a[:1], b[:1]).clean
    assert not found.clean


def test_what_cannot_be_compared_says_why(measured: Make) -> None:
    other = Subject("gfx1100", "cuda:0", "RX 7900 XTX", {"torch": "2.12"})
    found = changed([measured("a", 1.0)], [measured("a", 0.5, subject=other, started=LATER)])
    assert found.changes[0].comparison.reason == "other device: Radeon 8060S (gfx1151), then RX 7900 XTX (gfx1100)"
    assert found.overall is None
    assert not found.clean
    assert ("torch", "2.11", "2.12") in found.differs
    across = changed([measured("a", 1.0)], [measured("a", 0.5, subject=other, started=LATER)], across=True)
    assert across.changes[0].comparison.difference is Difference.FASTER
    redefined = changed([measured("a", 1.0)], [measured("a", 1.0, work=1e12)])
    assert redefined.changes[0].comparison.reason == "different definitions: work 4000000000000.0, then 1000000000000.0"


def test_two_settings_are_matched_by_case_and_what_they_set_is_named(measured: Make) -> None:
    off, on = Setting("lt=0", {"LT": "0"}), Setting("lt=1", {"LT": "1"})
    found = changed([measured("a", 1.0, off)], [measured("a", 1.3, on)])
    assert found.changes[0].comparison.difference is Difference.SLOWER
    assert found.differs == (("setting", "lt=0", "lt=1"), ("LT", "0", "1"))
    both = [measured("a", 1.0, off), measured("a", 1.3, on)]
    whole = changed(both, both)
    assert [change.setting for change in whole.changes] == ["lt=0", "lt=1"]
    assert whole.count(Difference.NONE) == 2


def test_the_overall_ratio_has_an_interval_that_is_narrower_than_a_case_s(measured: Make) -> None:
    pairs = [compared(measured(f"c{n}", 1.0), measured(f"c{n}", 1.1)) for n in range(9)]
    found = overall(pairs)
    one = pairs[0]
    assert found is not None
    assert one.low is not None
    assert one.high is not None
    assert found.low < 1 / 1.1 < found.high
    assert found.high - found.low < one.high - one.low
    assert (found.cases, found.difference) == (9, Difference.SLOWER)


def test_what_waited_longer_for_a_processor_is_not_called_slower(measured: Make) -> None:
    a, b = measured("a", 1.0), measured("a", 1.2)
    b = msgspec.structs.replace(b, waited=(1 / 6,) * len(b.blocks))
    a = msgspec.structs.replace(a, waited=(0.0,) * len(a.blocks))
    found = compared(a, b)
    assert found.difference is Difference.NONE
    assert found.ratio == pytest.approx(1 / 1.2, rel=0.02)
    assert found.reason == "they waited unequally for a processor that others had"
    alike = msgspec.structs.replace(b, waited=a.waited)
    assert compared(a, alike).difference is Difference.SLOWER
    hopeless = compared(a, msgspec.structs.replace(b, waited=(0.5,) * len(b.blocks)))
    assert hopeless.reason == "this machine was busy: 50 % of the time went by waiting for a processor"


def test_a_figure_throttled_by_heat_is_compared_only_within_its_run(measured: Make) -> None:
    heat = {"throttle": {"temperature": 0.8, "power limit": 1.0}}
    cool, hot = measured("a", 1.0), msgspec.structs.replace(measured("a", 1.2), telemetry=heat)
    assert compared(cool, hot).difference is Difference.SLOWER  # in turn: it met both alike
    later = msgspec.structs.replace(hot, started_at=LATER)
    said = "{} was throttled by temperature in 80 % of the readings, {} in 0 %"
    assert compared(cool, later).reason == said.format("the second", "the first")
    assert compared(later, cool).reason == said.format("the first", "the second")
    limited = msgspec.structs.replace(later, telemetry={"throttle": {"power limit": 1.0}})
    assert compared(cool, limited).difference is Difference.SLOWER
    assert compared(msgspec.structs.replace(cool, telemetry=heat), later).difference is Difference.SLOWER


def test_two_machines_with_the_same_gpu_are_told_apart(measured: Make) -> None:
    a, b = measured("a", 1.0), measured("a", 1.2, started=LATER)
    places: tuple[dict[str, str], ...] = ({"product": "Framework Desktop"}, {"product": "EVO-X2"}, {})
    here, there, nowhere = (msgspec.structs.replace(b, machine=place) for place in places)
    a = msgspec.structs.replace(a, machine=places[0])
    assert compared(a, there).reason == "other machine: Framework Desktop, then EVO-X2"
    assert [compared(*pair).difference.value for pair in ((a, here), (a, nowhere))] == ["slower", "slower"]
    assert compared(a, there, across=True).difference is Difference.SLOWER


def test_what_figures_depended_on_is_told_and_outlives_the_store(measured: Make) -> None:
    first = msgspec.structs.replace(measured("a", 1.0), conditions={"HSA_OVERRIDE_GFX_VERSION": "11.0.0"})
    noted = {BEFORE: "this machine runs on its battery"}
    second = msgspec.structs.replace(measured("a", 1.0, started=LATER), conditions=noted)
    kept = [measured_of(evidence_of(item, "run")) for item in (first, second)]
    assert changed(kept[:1], kept[1:]).differs == (
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", ""),
        (BEFORE, "", "this machine runs on its battery"),
    )
    plain = evidence_of(measured("a", 1.0), "run").identity
    assert evidence_of(second, "run").identity == plain != evidence_of(first, "run").identity


def _run(results: Sequence[Measured], settings: Sequence[Setting] = (DEFAULT,)) -> BenchRun:
    return BenchRun("bench-gemm-20260101-000000-aaaa", "gemm", "Products", tuple(settings), tuple(results))


def test_a_run_is_read_from_the_store_from_a_file_and_from_lines(measured: Make, tmp_path: Path) -> None:
    results = [measured("a", 1.0), measured("b", 2.0)]
    earlier, later = "bench-gemm-20260101-000000-aaaa", "bench-gemm-20260102-000000-bbbb"
    with Store.open(tmp_path / "e.sqlite") as store:
        for group in (earlier, later):
            for item in results:
                store.add(evidence_of(item, group))
        kept = [read_side(name, lambda: store) for name in (earlier, "last~1", "last")]
        lines = b"\n".join(msgspec.json.encode(row) for row in store.query(group=later))
    assert [side.results for side in kept] == [tuple(results)] * 3
    whole, rows, listed = tmp_path / "run.json", tmp_path / "rows.jsonl", tmp_path / "store.jsonl"
    whole.write_bytes(msgspec.json.encode({"command": "bench gemm", "data": run_data(_run(results))}))
    rows.write_bytes(b"\n".join(msgspec.json.encode(row_of(item)) for item in results) + b"\n")
    listed.write_bytes(lines)
    for path in (whole, rows, listed):
        found = read_side(str(path), _no_store)
        assert sorted(found.results, key=lambda item: item.case.id) == results
    assert msgspec.convert(run_data(_run(results)), BenchRun, strict=False) == _run(results)


def _no_store() -> Store:
    raise AssertionError("no store is needed")


def test_a_setting_of_a_run_is_named_after_an_at(measured: Make, tmp_path: Path) -> None:
    settings = Setting("lt=0"), Setting("lt=1")
    path = tmp_path / "run.json"
    results = [measured("a", 1.0, setting) for setting in settings]
    path.write_bytes(msgspec.json.encode({"data": run_data(_run(results, settings))}))
    assert read_side(f"{path}@lt=1", _no_store).results == (results[1],)
    with pytest.raises(UsageError, match="It has: lt=0, lt=1"):
        read_side(f"{path}@lt=2", _no_store)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"data": {"results": [1]}}', b'{"data": 3}', b'{"data": {"results": [{"case": {}}]}}'],
)
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_a_file_that_holds_no_run_is_refused(data: bytes, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"odd{ending}"
    path.write_bytes(data)
    with pytest.raises((DataError, UsageError)):
        read_side(str(path), _no_store)


def test_runs_and_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with Store.open(tmp_path / "e.sqlite") as store:
        for name in ("last", "last~3", "bench-gemm-1", "no/such.json", "gemm~1", "last~-1", ""):
            with pytest.raises(UsageError, match=r"no such|no run|has no"):
                read_side(name, lambda: store)


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_a_file_of_a_newer_rocmend_is_refused(ending: str, measured: Make, tmp_path: Path) -> None:
    rows = [row_of(measured("a", 1.0))]
    path = tmp_path / f"new{ending}"
    data = {"schema_version": 99, **rows[0]} if ending == ".jsonl" else {"schema_version": 99, "data": rows}
    path.write_bytes(msgspec.json.encode(data))
    with pytest.raises(DataError, match=r"has schema_version 99; this rocmend reads up to 1\."):
        read_side(str(path), _no_store)


def test_json_that_is_another_thing_is_not_called_no_json(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    with pytest.raises(DataError, match=r"holds no run of a benchmark\.") as error:
        read_side(str(path), _no_store)
    assert "no JSON" not in str(error.value)


def test_a_lost_figure_is_typed_as_it_failed_in_junit(measured: Make) -> None:
    lost = measured("lost", None)
    killed = msgspec.structs.replace(lost, verdict=Verdict.OOM)
    unsupported = msgspec.structs.replace(measured("gone", None), verdict=Verdict.UNSUPPORTED)
    found = changed([measured("lost", 1.0), measured("gone", 1.0)], [killed, unsupported])
    verdicts = {case.name: case.verdict for case in junit_suite(found).cases}
    assert (verdicts["gemm/lost"], verdicts["gemm/gone"]) == (Verdict.OOM, Verdict.INFRA)


def test_a_device_without_a_target_has_no_empty_brackets(measured: Make) -> None:
    one = measured("a", 1.0, subject=Subject(device_name="Strix Halo"))
    other = measured("a", 1.0, subject=Subject(device_name="RTX"), started=LATER)
    assert Side("A", (one,)).device == "Strix Halo"
    assert changed([one], [other]).changes[0].comparison.reason == "other device: Strix Halo, then RTX"
