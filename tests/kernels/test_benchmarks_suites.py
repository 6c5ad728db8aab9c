"""Suites of all ops side by side: every case is run once, memory suffices, and what was told is never lost."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels.suites import __main__ as program
from benchmarks.kernels.suites import crew, sources
from benchmarks.kernels.suites.board import ALONE_GIB, Board, Item, grouped, items
from benchmarks.kernels.suites.outcomes import Cost, Log, costs

from rocmend.core.verdict import Verdict
from rocmend.kernels.suite.supervise import MARK, CaseOutcome

pytestmark = pytest.mark.cpu


def _item(name: str, seconds: float = 1.0, gib: float = 0.3, size: str = "small", op: str = "some") -> Item:
    return Item(op, name, size, seconds, gib)


def test_what_takes_long_or_much_memory_comes_first_and_neighbours_stay_together() -> None:
    plain = [_item(f"{number}") for number in range(9)]
    sorted_ = grouped([*plain, _item("long", 20.0), _item("big", gib=50.0, size="large"), _item("other", size="large")])
    assert [one.case for one in sorted_[:3]] == ["big", "long", "other"]
    assert len({one.group for one in sorted_[:3]}) == 3
    groups = [one.group for one in sorted_[3:]]
    assert groups == sorted(groups, key=groups.index)  # each in one piece
    assert 2 <= len(set(groups)) <= 3


def test_every_case_is_handed_out_once_within_the_memory_that_there_is() -> None:
    much = [_item(f"big{number}", gib=70.0, size="large") for number in range(3)]
    rest = [_item(f"{number}", gib=4.0, size="large") for number in range(60)]
    board = Board(grouped([*rest, *much]), time.monotonic() + 60)
    for gpu in ("0", "1"):
        board.opened(gpu, 100.0)
    running: list[tuple[str, Item]] = []
    seen: list[str] = []
    begun_big: list[int] = []
    while board.waiting or running:
        for gpu in ("0", "1"):
            while (item := board._next(gpu, -1)) is not None:
                assert board.take(gpu, -1) is item
                running.append((gpu, item))
                seen.append(item.case)
                if item.gib >= ALONE_GIB:
                    begun_big.append(len(seen))
            assert sum(one.gib for at, one in running if at == gpu) <= 100.0
        board.done(*running.pop(0))
    assert sorted(seen) == sorted(one.case for one in (*rest, *much))
    # The third does not wait until all the others are done.
    assert begun_big[2] < len(seen)


def test_what_ran_out_of_memory_runs_again_alone() -> None:
    board = Board(grouped([_item("a"), _item("b")]), time.monotonic() + 60)
    board.opened("0", 10.0)
    first = board.take("0", -1)
    assert first is not None
    other = board.take("0", first.group)
    assert other is not None
    board.done("0", first, again=True)
    assert board._next("0", first.group) is None  # the other one still runs
    board.done("0", other)
    assert board.take("0", -1) is first
    board.done("0", first)
    assert board.take("0", -1) is None


def test_what_needs_much_runs_where_there_is_most() -> None:
    board = Board(grouped([_item("big", gib=80.0, size="large"), _item("a")]), time.monotonic() + 60)
    board.opened("0", 30.0)
    board.opened("1", 90.0)
    first = board.take("0", -1)
    assert first is not None
    assert first.case == "a"
    board.done("0", first, again=True)  # alone, so on the other one
    assert board._next("0", -1) is None
    second = board.take("1", -1)
    assert second is not None
    assert second.case == "big"
    assert board._next("1", -1) is None
    board.done("1", second)
    assert board.take("1", -1) is first


def test_nothing_is_begun_when_time_is_up() -> None:
    board = Board(grouped([_item("a")]), time.monotonic() - 1)
    board.opened("0", 10.0)
    assert board.take("0", -1) is None


def test_all_cases_are_known_with_what_they_took() -> None:
    found = items(["sort"], ("tiny", "large"), {("sort", "float32-40000000-axis-1"): Cost(9.0, 3.5)})
    assert {one.size for one in found} == {"tiny", "large"}
    (known,) = [one for one in found if one.case == "float32-40000000-axis-1"]
    assert (known.seconds, known.gib) == (9.0, 3.5)
    (huge,) = [one for one in items(["quantize"], ("large",), {}) if "134217728" in one.case]
    assert huge.gib > 50


def test_a_log_that_was_cut_off_is_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path, {"a": "1", "b": "1"})
    log.device({"name": "some GPU"})
    log.add("a", CaseOutcome("x", Verdict.PASS, "", 0.5, 1500.0), "large", 2.5)
    log.add("a", CaseOutcome("y", Verdict.CRASH, "why", 0.0, 1.0), "tiny", None)
    log.add("b", CaseOutcome("x", Verdict.PASS), "tiny", 0.1)
    path.write_text(path.read_text() + '{"op": "a", "case": "z", "verd')
    later = Log(path, {"a": "1", "b": "2"})  # the code of b has changed
    assert later.about == {"name": "some GPU"}
    assert [later.passed(*one) for one in (("a", "x"), ("a", "y"), ("b", "x"))] == [True, False, False]
    assert later.outcomes["a"]["y"].detail == "why"
    assert costs([path])["a", "x"] == Cost(1.5, 2.5)


def test_code_is_what_is_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    for folder in ("ops/a/one", "ops/b/two", "common"):
        (tmp_path / folder).mkdir(parents=True)
    own, other, shared = tmp_path / "ops/a/one/host.py", tmp_path / "ops/b/two/host.py", tmp_path / "common/part.py"
    plain = (
        '"""Says what it is."""\nfrom rocmend.kernels.common import part\n\n\ndef f():\n    """Tell."""\n    return 1\n'
    )

    def told() -> str:
        sources._reached.cache_clear()
        sources._code.cache_clear()
        return sources.digest("one")

    own.write_text(plain)
    shared.write_text("from rocmend.kernels.ops.b.two.host import g\n")
    other.write_text("g = 1\n")
    first = told()
    own.write_text(plain.replace("Tell", "Say").replace("    return", "    # why\n\n    return"))
    assert told() == first
    other.write_text("g = 2\n")
    second = told()
    assert second != first
    own.write_text(plain.replace("return 1", "return 2"))
    assert told() not in {first, second}


WORKER = f"""
import json, os, sys, time
def say(**event): print({MARK!r} + json.dumps(event), flush=True)
say(event="device", target="cpu", vendor="cpu", name="none", versions={{}}, gib=0.0)
for line in sys.stdin:
    case = json.loads(line)["case"]
    if case == "dies": os._exit(7)
    if case == "hangs": print("Timeout (0:01:30)!", file=sys.stderr, flush=True); os._exit(1)
    if case == "stays": time.sleep(60)
    say(event="case", verdict="oom" if case == "large" else "pass", detail="", worst=0.0, ms=1.0, gib=0.0)
"""


def test_a_case_that_ends_its_process_is_told_of_and_takes_nothing_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "suite_worker_of_test.py").write_text(WORKER)
    monkeypatch.setattr(crew, "WORKER", "suite_worker_of_test")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["a", "dies", "b", "hangs", "c", "large", "d"]
    log = Log(tmp_path / "log.jsonl", {"some": "1"})
    end = time.monotonic() + 60
    crew.Crew(Board(grouped([_item(one) for one in names]), end), log, "cpu", 90.0).work([""], 1, end)
    verdicts = {name: one.verdict.value for name, one in log.outcomes["some"].items()}
    assert verdicts == dict.fromkeys("abcd", "pass") | {"dies": "crash", "hangs": "hang", "large": "oom"}
    assert "exit 7" in log.outcomes["some"]["dies"].detail


def test_what_runs_when_time_is_up_counts_as_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite_worker_of_test.py").write_text(WORKER)
    monkeypatch.setattr(crew, "WORKER", "suite_worker_of_test")
    monkeypatch.syspath_prepend(str(tmp_path))
    log = Log(tmp_path / "log.jsonl", {"some": "1"})
    end = time.monotonic() + 3
    made = crew.Crew(Board(grouped([_item("a"), _item("stays")]), end), log, "cpu", 90.0)
    made.work([""], 1, end)
    assert made.over
    assert "stays" not in log.outcomes["some"]


@pytest.mark.slow
def test_a_second_run_has_nothing_left_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, record = tmp_path / "log.jsonl", tmp_path / "runs.json"
    options = ["--ops", "router", "--sizes", "tiny", "--device", "cpu", "--jobs", "1", "--log", str(log)]
    assert program.main([*options, "--seconds", "120"]) == 0
    count = len(log.read_text().splitlines())
    assert program.main([*options, "--seconds", "0", "--record", str(record)]) == 0
    assert len(log.read_text().splitlines()) == count
    (run,) = json.loads(record.read_text())
    assert (run["op"], run["verdict"], run["passed"], run["count"]) == ("router", "pass", 30, 30)
    assert "30 of 30 passed, 0 not begun" in capsys.readouterr().out
