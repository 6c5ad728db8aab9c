"""A suite is run, what comes out is kept, and a run that was cut short is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.measure import Effort
from rocmend.bench.records import measured_of
from rocmend.bench.run import run_suite
from rocmend.bench.session import Block, Prepared, Session, Stop, Subject
from rocmend.bench.suite import Suite
from rocmend.cli.views.bench import run_summary
from rocmend.core.verdict import Verdict
from rocmend.core.version import version_text
from rocmend.store.store import Store

EFFORT = Effort(block_s=0.0, least_blocks=3, most_blocks=3)


class _Made(Session):
    """Answers from a table: seconds by setting, verdicts by case."""

    def __init__(self, setting: Setting, log: list[str], resets: dict[str, Verdict]) -> None:
        self.setting, self.log, self.resets = setting, log, resets

    def _started(self, what: str) -> tuple[Verdict, str]:
        """Return the verdict of the start, and the reset that came with it, by how often this was started."""
        self.log.append(what)
        verdict = self.resets.get(f"{what} {self.log.count(what)}")
        return (Verdict.PASS, "") if verdict is None else (verdict, "the GPU was reset")

    def prepare(self, case: Case) -> Prepared:
        found, reset = self._started(f"prepare {case.id} {self.setting.id}")
        verdict = found if reset else Verdict(case.parameters.get("verdict", "pass"))
        reason = "" if verdict is Verdict.PASS else "as asked"
        return Prepared(verdict, reason, 0.5, subject=Subject("gfx1151"), quarantine=reset)

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        del time_s
        verdict, reset = self._started(f"block {case.id} {self.setting.id}")
        return Block((float(self.setting.options["seconds"]),) * least, verdict, quarantine=reset)

    def close(self) -> None:
        self.log.append(f"close {self.setting.id}")


class _Suite(Suite):
    name, title = "made", "Made-up cases"

    def __init__(self, *cases: Case, resets: dict[str, Verdict] | None = None) -> None:
        self.log: list[str] = []
        self.resets = resets or {}
        self._cases = list(cases)

    def cases(self) -> list[Case]:
        return self._cases

    def settings(self) -> list[Setting]:
        return [Setting("slow", options={"seconds": 2.0}), Setting("fast", options={"seconds": 1.0})]

    def open(self, setting: Setting, stop: Stop) -> Session:
        del stop
        return _Made(setting, self.log, self.resets)


def _case(name: str, verdict: str = "pass") -> Case:
    return Case(f"made/{name}", "made", {"verdict": verdict}, "TFLOPS", 4e12)


def test_settings_are_timed_in_turn_and_figures_follow() -> None:
    suite = _Suite(_case("a"))
    run = run_suite(suite, effort=EFFORT)
    assert [result.figure for result in run.results] == [2.0, 4.0]
    assert run.results[0].interval == (2.0, 2.0)
    turns = [line.split()[-1] for line in suite.log if line.startswith("block")]
    assert turns == ["slow", "fast", "fast", "slow", "fast", "slow"]
    assert suite.log[-2:] == ["close fast", "close slow"]
    assert run.clean
    assert not run.group, "without a store there is no run to name"


def test_wrong_output_has_no_figure_and_others_go_on(tmp_path: Path) -> None:
    suite = _Suite(_case("a", "wrong-output"), _case("b"))
    with Store.open(tmp_path / "evidence.sqlite") as store:
        run = run_suite(suite, effort=EFFORT, store=store)
        rows = list(store.query(kind="bench", group=run.group))
    assert [(result.verdict.value, result.figure) for result in run.results] == [
        ("wrong-output", None),
        ("wrong-output", None),
        ("pass", 2.0),
        ("pass", 4.0),
    ]
    assert not any(line.startswith("block made/a") for line in suite.log)
    assert len(rows) == 4
    assert not run.clean


def test_a_run_goes_on_where_it_was_cut_short(tmp_path: Path) -> None:
    cases = (_case("a"), _case("b"))
    with Store.open(tmp_path / "evidence.sqlite") as store:
        first = _Suite(*cases)
        done: list[int] = []
        cut = run_suite(first, effort=EFFORT, store=store, on_result=lambda *_: done.append(1), stop=lambda: bool(done))
        assert len(cut.results) == 2
        assert cut.not_run == ("made/b @ slow", "made/b @ fast")
        second = _Suite(*cases)
        whole = run_suite(second, effort=EFFORT, store=store, resume="last")
    assert (whole.group, whole.resumed, whole.clean) == (cut.group, 2, True)
    assert whole.results[:2] == cut.results
    assert not any("made/a" in line for line in second.log)


def test_a_run_is_neither_widened_nor_called_complete_where_cases_are_others_now(tmp_path: Path) -> None:
    with Store.open(tmp_path / "evidence.sqlite") as store:
        first = run_suite(_Suite(_case("a")), effort=EFFORT, store=store)
        more = _Suite(_case("a"), _case("c"))
        again = run_suite(more, effort=EFFORT, store=store, resume=first.group)
        assert ([one.case.id for one in again.results], again.resumed) == (["made/a"] * 2, 2)
        assert not any("made/c" in line for line in more.log)
        done: list[int] = []
        suite = _Suite(_case("a"), _case("b"))
        cut = run_suite(suite, effort=EFFORT, store=store, on_result=lambda *_: done.append(1), stop=lambda: bool(done))
        less = run_suite(_Suite(_case("c")), effort=EFFORT, store=store, resume=cut.group)
    assert [one.case.id for one in less.results] == ["made/a"] * 2
    assert less.not_run == ("made/b @ fast", "made/b @ slow")
    assert any(note.startswith("Begun with, and not there any more: made/b @ fast") for note in less.notes)


@pytest.mark.parametrize("verdict", [Verdict.GPU_RESET, Verdict.PASS])
@pytest.mark.parametrize(
    ("resets_at", "starts", "figures"),
    [
        ("prepare made/a fast 1", 2, [None, None]),
        ("block made/a slow 1", 3, [None, None]),
        ("block made/a fast 2", 5, [2.0, 4.0]),
    ],
)
def test_after_a_reset_nothing_is_started_and_its_round_is_dropped(
    tmp_path: Path, resets_at: str, starts: int, figures: list[float | None], verdict: Verdict
) -> None:
    suite = _Suite(_case("a"), _case("b"), resets={resets_at: verdict})
    with Store.open(tmp_path / "evidence.sqlite") as store:
        run = run_suite(suite, effort=EFFORT, store=store)
        assert sum(not line.startswith("close") for line in suite.log) == starts
        assert (run.quarantine, run.not_run) == ("the GPU was reset", ("made/b @ slow", "made/b @ fast"))
        culprit = ["slow", "fast"].index(resets_at.split()[2])
        if verdict is Verdict.GPU_RESET:
            figures = [None if index == culprit else figure for index, figure in enumerate(figures)]
        assert [result.figure for result in run.results] == figures
        assert all(len(result.blocks) == (1 if starts == 5 else 0) for result in run.results)
        without = [result for result in run.results if result.figure is None]
        assert all(result.reason for result in without)
        assert all(result.verdict is not Verdict.PASS for result in without)
        again = run_suite(_Suite(_case("a"), _case("b")), effort=EFFORT, store=store, resume="last")
    wrong = verdict is Verdict.GPU_RESET
    assert [item.figure for item in again.results[2:]] == [2.0, 4.0]
    assert again.results[1 - culprit].figure is not None
    assert (again.results[culprit].verdict is Verdict.GPU_RESET) == wrong


def test_a_record_gives_back_what_was_measured(tmp_path: Path) -> None:
    with Store.open(tmp_path / "evidence.sqlite") as store:
        run = run_suite(_Suite(_case("a")), effort=EFFORT, store=store, command="rocmend bench made")
        kept = [measured_of(row.evidence) for row in store.query(group=run.group)]
    assert kept[0].origin == {"command": "rocmend bench made", "rocmend": version_text()}
    assert sorted(kept, key=lambda item: item.setting.id, reverse=True) == list(run.results)
    assert kept[0].setting != DEFAULT


def test_what_is_not_supported_is_missing_where_it_was_named_or_is_all_of_a_setting() -> None:
    good = Case("made/good", "made", {}, "it/s", 1.0)
    lacking = Case("made/lacking", "made", {"verdict": "unsupported"}, "it/s", 1.0)
    tried = run_suite(_Suite(good, lacking), effort=EFFORT)
    assert tried.clean
    named = run_suite(_Suite(good, lacking), effort=EFFORT, named=True)
    assert not named.clean
    assert {item.case.id for item in named.lacking} == {"made/lacking"}

    class Half(_Suite):
        def applies(self, case: Case, setting: Setting) -> str:
            return f"{case.id} is not there" if setting.id == "fast" else ""

    half = run_suite(Half(good), effort=EFFORT)
    assert not half.clean
    assert "1 figure missing: not supported here" in run_summary(half)[0]
