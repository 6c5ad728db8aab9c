"""The suites as AMD machine code: a case of every op, cases that found something, and faults that must be found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("rocm")

from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.kernels import registry
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import available
from rocmend.kernels.suite import emulate
from rocmend.kernels.suite.emulate import Selection, check_emulated, spread
from rocmend.kernels.suite.run import cases_of
from rocmend.kernels.suite.supervise import CaseOutcome, OpRun

pytestmark = pytest.mark.cpu

HERE = Path(__file__).parent


def test_the_first_cases_differ_most() -> None:
    cases = spread(cases_of(registry.get("softmax")))
    kinds = {(case.function, case.implementation) for case in cases}
    assert {(case.function, case.implementation) for case in cases[: len(kinds)]} == kinds
    assert {case.name for case in cases} == {case.name for case in cases_of(registry.get("softmax"))}
    assert "empty" not in cases[0].edges


class _Pool:
    """Answers tasks at once, as ``answers`` says."""

    answers: Callable[[dict[str, Any]], dict[str, Any]]

    def __init__(self, *_args: Any, **_settings: Any) -> None: ...

    def __class_getitem__(cls, _: Any) -> type[_Pool]:
        return cls

    def map(self, tasks: Any, done: Callable[[Any, dict[str, Any]], None]) -> None:
        for key, _, request in tasks:
            done(key, type(self).answers(request))


def _answer(request: dict[str, Any], verdict: str = "pass") -> dict[str, Any]:
    return {"ok": {"outcome": {"case": request["case"], "verdict": verdict, "implementation": "held"}, "launches": 1}}


def _selection(**settings: Any) -> Selection:
    return Selection(("softmax", "rope"), ("gfx1100", "gfx942"), (Toolchain("3.9.0"),), most=2)._replace(**settings)


def test_what_came_out_is_summed_by_op_and_target(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "rope":
            return {"error": "no end after 180 s"} if request["target"] == "gfx942" else _answer(request, "skipped")
        return _answer(request)

    monkeypatch.setattr(_Pool, "answers", staticmethod(answers), raising=False)
    monkeypatch.setattr(emulate, "Pool", _Pool)
    done: dict[tuple[str, str], OpRun] = {}
    said: list[tuple[str, Verdict, int, int]] = []
    check_emulated(_selection(), lambda what, out, *counts: said.append((what, out.verdict, *counts)), done)
    assert [(one[2], one[3]) for one in said] == [(count, 8) for count in range(1, 9)]
    assert {what.partition("/")[0] for what, *_ in said[:4]} == {"softmax", "rope"}  # each has its first turn early
    run = done["softmax", "gfx1100"]
    assert (run.rung, run.passed, run.count, run.implementations) == ("emulated", 2, 2, {"held": 2})
    assert run.known == len(list(cases_of(registry.get("softmax"))))
    assert (done["rope", "gfx942"].verdict, done["rope", "gfx942"].passed) == (Verdict.HANG, 0)
    assert done["rope", "gfx1100"].count == 0  # what launches nothing proves nothing


def test_no_case_begins_after_the_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Pool, "answers", staticmethod(_answer), raising=False)
    monkeypatch.setattr(emulate, "Pool", _Pool)
    done: dict[tuple[str, str], OpRun] = {}
    check_emulated(_selection(total_s=0.0), lambda *_: None, done)
    assert list(done) == [("softmax", "gfx1100")]


def test_a_target_without_a_triton_is_refused() -> None:
    with pytest.raises(UsageError, match="fetch-triton"):
        check_emulated(_selection(targets=("gfx1010",)), lambda *_: None, {})
    with pytest.raises(UsageError, match="gfx700 is not executed"):
        check_emulated(_selection(targets=("gfx700",)), lambda *_: None, {})


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    (installed,) = (one for one in available() if one.path is None)
    found = Worker(installed, tmp_path_factory.mktemp("worker"), own_cache=False)
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "case", "target"),
    [
        ("attention_decode", "float16-d64-v40-split", "gfx942"),  # v_pk_mov_b32 with op_sel took the wrong halves
        ("attention_decode", "float16-d64-v40-split", "gfx950"),  # ds_read_b64_tr_b16
        ("cross_entropy", "float32-1x1-int64-smooth-0.0", "gfx1100"),  # v_mov_b16 in VOP3
        ("gated_linear_unit", "float32-silu-1x1", "gfx1201"),  # v_s_exp_f32
    ],
)
def test_cases_that_found_faults_of_the_emulator(worker: Worker, op: str, case: str, target: str) -> None:
    request = {"do": "emulate", "op": op, "case": case, "target": target, "sizes": ["tiny", "small"]}
    found = worker.ask(request, 300)["ok"]
    assert found["outcome"]["verdict"] == "pass", found
    assert found["launches"] >= 2
    assert found["wave_instructions"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1100", "gfx942"])
def test_a_case_of_every_op_is_right_as_machine_code(target: str) -> None:
    names = tuple(op.name for op in registry.ops())
    done: dict[tuple[str, str], OpRun] = {}
    check_emulated(Selection(names, (target,), tuple(available()), most=1, jobs=2), lambda *_: None, done)
    assert {op for op, _ in done} == set(names)
    assert not [(run.op, run.not_passed) for run in done.values() if run.verdict is not Verdict.PASS]
    assert all(run.count == 1 for run in done.values())


_FAULTS = {"none": "right", "barrier": "LDS_RACE", "wait": "NOT_WAITED", "bound": "BAD_ADDRESS"}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1100", "gfx942"])
def test_faults_put_into_a_kernel_are_found(target: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(HERE / "seeded.py"), "softmax", "float32-2x16384-axis--1", target, *_FAULTS]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert said.returncode == 0, said.stderr
    found = dict(line.split(": ") for line in said.stdout.splitlines())
    assert list(found) == list(_FAULTS)
    assert found["none"] == "right"
    assert all(kind in found[fault].split() for fault, kind in _FAULTS.items()), found


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    import io
    from contextlib import redirect_stderr, redirect_stdout

    from rocmend.cli.main import main

    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: str) -> SimpleNamespace:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main(["kernels", "check", *arguments])
        return SimpleNamespace(code=stop.value.code, out=out.getvalue(), err=err.getvalue())

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cases", "1"), "it belongs to --emulate"),
        (("--time-limit", "5s"), "it belongs to --emulate"),
        (("--emulate", "gfx1100", "--device", "cpu"), "cannot be combined with --device"),
    ],
)
def test_options_that_do_not_fit_are_refused(rocmend: Any, arguments: tuple[str, ...], said: str) -> None:
    done = rocmend("rope", *arguments)
    assert done.code == 2
    assert said in done.err


def _emulated(op: str, target: str, verdict: Verdict = Verdict.PASS) -> OpRun:
    bad = () if verdict is Verdict.PASS else (CaseOutcome("tiny", verdict, "a race in the LDS\n  at 0x4: s_nop"),)
    return OpRun(
        op, "emulated", target, emulate.DEVICE_NAME, verdict, 1 - len(bad), 1, bad, 0.5, 9.0, {"triton": "3.9.0"},
        "2026-11-29T08:00:00.000", ("tiny",), {}, 40,
    )  # fmt: skip


def test_runs_of_several_targets_are_shown_and_kept(
    rocmend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def check(selection: Selection, told: Any, done: Any) -> None:
        assert (selection.most, selection.total_s) == (3, 60.0)
        for target, verdict in zip(selection.targets, (Verdict.PASS, Verdict.CRASH), strict=True):
            done["rope", target] = run = _emulated("rope", target, verdict)
            told(f"rope/tiny on {target}", (*run.not_passed, CaseOutcome("tiny", verdict))[0], 1, 2)

    monkeypatch.setattr(emulate, "check_emulated", check)
    record = tmp_path / "runs.json"
    arguments = ("--emulate", "gfx1151,gfx942", "--cases", "3", "--time-limit", "1min")
    done = rocmend("rope", *arguments, "--record", str(record))
    assert done.code == 1, done.err
    assert "1 of 2 cases passed on rocmend.emulate on the CPU (gfx1151, gfx942). There are 80" in done.out
    assert "rope/tiny on gfx942: crash, a race in the LDS" in done.err
    assert [(one["target"], one["rung"], one["known"]) for one in json.loads(record.read_text())] == [
        ("gfx1151", "emulated", 40), ("gfx942", "emulated", 40),
    ]  # fmt: skip


def test_what_was_run_is_shown_when_it_is_interrupted(rocmend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_selection: Selection, _told: Any, done: Any) -> None:
        done["rope", "gfx1151"] = _emulated("rope", "gfx1151")
        raise KeyboardInterrupt

    monkeypatch.setattr(emulate, "check_emulated", check)
    done = rocmend("rope", "--emulate", "gfx1151", "--no-store")
    assert done.code == 130
    assert "1 of 1 case passed" in done.out
