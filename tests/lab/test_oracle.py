from __future__ import annotations

import array
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.evidence import PhaseSpan
from rocmend.core.verdict import Verdict
from rocmend.lab.experiment import (
    Criterion,
    ExitAndPattern,
    Experiment,
    FileWithin,
    NumberWithin,
    Oracle,
    OutputEquals,
    OutputMatches,
)
from rocmend.lab.oracle import Judgement, Output, judge, read_numbers, read_output
from rocmend.runner.output import OutputSummary
from rocmend.runner.result import AttemptResult

RESULT = AttemptResult(
    "a", "a", "i", Verdict.PASS, "it exited with status 0", "2026-01-01T00:00:00Z", 1500.0, exit_code=0
)


def _judge(
    experiment: Experiment, oracle: Oracle, text: str, *success: Criterion, result: AttemptResult = RESULT
) -> Judgement:
    asked = msgspec.structs.replace(experiment, oracle=oracle, success=success)
    return judge(asked, result, Output(text, text), Path(experiment.folder))


@pytest.mark.parametrize(
    ("oracle", "right", "wrong"),
    [
        (OutputEquals(text="a\nb"), " a\nb\n", "a\nc"),
        (OutputEquals(text="a\nb"), "a\nb", "a"),
        (OutputMatches("^x=1$"), "y\nx=1\nz", "xx=1"),
        (OutputMatches("x", absent="error"), "x", "x error"),
        (NumberWithin("ppl = ([0-9.]+)", at_most=7.0), "ppl = 9\nppl = 6.5", "ppl = 6.5\nppl = 7.5"),
        (NumberWithin("ppl = (.*)", at_least=1), "ppl = 2", "ppl = nan"),
        (NumberWithin("ppl = (.*)", at_least=1), "ppl = 2", "none"),
        (ExitAndPattern(0, "done"), "done", "do"),
    ],
)
def test_oracles_tell_right_from_wrong(experiment: Experiment, oracle: Oracle, right: str, wrong: str) -> None:
    assert _judge(experiment, oracle, right).verdict is Verdict.PASS
    assert _judge(experiment, oracle, wrong).verdict is Verdict.WRONG_OUTPUT


def test_an_exit_that_is_asked_for_is_no_crash(experiment: Experiment) -> None:
    crash = msgspec.structs.replace(RESULT, verdict=Verdict.CRASH, exit_code=3)
    assert _judge(experiment, ExitAndPattern(3, "x"), "x", result=crash).verdict is Verdict.PASS
    assert _judge(experiment, ExitAndPattern(3, "x"), "y", result=crash).verdict is Verdict.WRONG_OUTPUT
    assert _judge(experiment, ExitAndPattern(4, "x"), "x", result=crash).verdict is Verdict.CRASH
    killed = msgspec.structs.replace(crash, exit_code=None, signal=11)
    assert _judge(experiment, ExitAndPattern(3, "x"), "x", result=killed).verdict is Verdict.CRASH
    assert _judge(experiment, ExitAndPattern(3, "x"), "x").verdict is Verdict.WRONG_OUTPUT


def test_wrong_is_wrong_however_fast(experiment: Experiment) -> None:
    fast = Criterion("speed", number="([0-9]+) t/s", at_least=50)
    assert _judge(experiment, OutputMatches("42"), "41, 900 t/s", fast).verdict is Verdict.WRONG_OUTPUT
    assert _judge(experiment, OutputMatches("42"), "42, 900 t/s", fast).verdict is Verdict.PASS
    slow = _judge(experiment, OutputMatches("42"), "42, 30 t/s", fast)
    assert (slow.verdict, slow.figures, slow.met) == (Verdict.SLOW, {"speed": 30.0}, {"speed": False})


def test_criteria_of_phase_and_time(experiment: Experiment) -> None:
    result = msgspec.structs.replace(RESULT, timeline=(PhaseSpan("load", 0, 1),))
    oracle = OutputMatches("x")
    phase, late, person = Criterion("p", phase="ready"), Criterion("t", within_s=1.0), Criterion("for a person")
    assert _judge(experiment, oracle, "x", Criterion("p", phase="load"), result=result).verdict is Verdict.PASS
    assert _judge(experiment, oracle, "x", phase, result=result).verdict is Verdict.WRONG_OUTPUT
    assert _judge(experiment, oracle, "x", late, result=result).verdict is Verdict.SLOW
    both = _judge(experiment, oracle, "x", late, phase, result=result)
    assert (both.verdict, both.met) == (Verdict.WRONG_OUTPUT, {"t": False, "p": False})
    assert _judge(experiment, oracle, "x", person).met == {}


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ([1.0, -2.0, 100.0], Verdict.PASS),
        ([1.04, -2.0, 100.9], Verdict.PASS),
        ([1.2, -2.0, 100.0], Verdict.WRONG_OUTPUT),
        ([1.0, -2.0, float("nan")], Verdict.WRONG_OUTPUT),
        ([1.0, -2.0, float("inf")], Verdict.WRONG_OUTPUT),
        ([1.0, -2.0], Verdict.WRONG_OUTPUT),
    ],
)
def test_files_are_compared_within_tolerance(experiment: Experiment, numbers: list[float], verdict: Verdict) -> None:
    folder = Path(experiment.folder)
    (folder / "reference.json").write_text("[1.0, -2.0, 100.0]")
    (folder / "logits.f32").write_bytes(array.array("f", numbers).tobytes())
    oracle = FileWithin("{out}/logits.f32", "reference.json", absolute=0.05, relative=0.01)
    found = _judge(experiment, oracle, "")
    assert found.verdict is verdict, found.reason


def test_a_file_that_was_not_written_is_wrong_output(experiment: Experiment) -> None:
    (Path(experiment.folder) / "reference.txt").write_text("1 2\n3")
    found = _judge(experiment, FileWithin("{out}/absent", "reference.txt"), "")
    assert found.verdict is Verdict.WRONG_OUTPUT
    assert "cannot be read" in found.reason


@pytest.mark.parametrize(("name", "data"), [("x.f32", b"123"), ("x.json", b"[1, oops]"), ("x.txt", b"1 two")])
def test_files_that_hold_something_else_are_refused(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=name):
        read_numbers(tmp_path / name)


@given(st.lists(st.floats(allow_nan=False)))
def test_json_and_text_say_the_same(tmp_path_factory: pytest.TempPathFactory, numbers: list[float]) -> None:
    folder = tmp_path_factory.getbasetemp()
    finite = [number for number in numbers if abs(number) != float("inf")]
    (folder / "n.json").write_text(json.dumps(finite))
    (folder / "n.txt").write_text("\n".join(map(repr, finite)))
    assert list(read_numbers(folder / "n.json")) == list(read_numbers(folder / "n.txt")) == finite


def test_standard_output_is_told_from_errors_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(
        "[      0.001 o] one\n[      0.002 e] warning\n[      0.003 o] \n[      0.004 o] two\n[… 5 bytes …]\n"
    )
    result = msgspec.structs.replace(RESULT, output=OutputSummary(log=str(log), head="not this"))
    assert read_output(result) == Output("one\n\ntwo", "one\nwarning\n\ntwo")
    assert read_output(msgspec.structs.replace(RESULT, output=OutputSummary(head="head"))).both == "head"
