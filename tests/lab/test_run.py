"""Trials of a made-up workload, run for real."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.lab.conclude import conclude
from rocmend.lab.experiment import Experiment
from rocmend.lab.laboratory import Laboratory, QuarantinedError
from rocmend.lab.load import load_experiment
from rocmend.lab.minimize import minimize, remembered
from rocmend.lab.outcome import Outcome, collect
from rocmend.lab.plan import all_trials, make_plan
from rocmend.lab.service import report_of, status_of, trial_named
from rocmend.lab.state import Begun, Standstill, State
from rocmend.runner.journal import Journal
from rocmend.runner.run import run_attempt
from rocmend.store.store import Store

Write = Callable[..., Path]


def _outcomes(experiment: Experiment, store: Store) -> dict[str, Outcome]:
    return {item.trial.id: item for item in collect(experiment, store).outcomes}


@pytest.mark.slow
def test_every_kind_of_end_has_its_verdict(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    report = lab.run(all_trials(experiment))
    assert report.ran == dict.fromkeys(("baseline", "good", "red", "crash", "flaky", "slow", "wrong"), 1)
    found = _outcomes(experiment, store)
    assert {name: item.text for name, item in found.items()} == {
        "baseline": "hang after load",
        "good": "pass",
        "red": "pass",
        "crash": "crash after compute",
        "flaky": "crash after compute",
        "slow": "slow",
        "wrong": "wrong-output",
    }
    assert found["wrong"].figures == {}  # its speed is not even looked at
    assert found["slow"].figures == {"fast enough": 1.0}
    assert [span.name for span in found["good"].timeline] == ["start", "load", "compute"]


def test_runs_that_were_made_are_not_made_again(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    good = trial_named(experiment, "good")
    assert lab.run([good]).ran == {"good": 1}
    again = lab.run([good])
    assert (again.ran, again.kept) == ({}, {"good": 1})
    assert lab.run([good], repeats=3).ran == {"good": 2}
    assert _outcomes(experiment, store)["good"].runs == 3
    assert not lab.bench.journal.read_bytes()
    records = list(store.query(kind="trial", subject="good"))
    assert {item.evidence.identity for item in records} == {records[0].evidence.identity}
    assert b"answer: 42" in store.artifact(records[0].evidence.artifacts[0].sha256)


def test_a_changed_workload_is_another_trial(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    good = trial_named(experiment, "good")
    lab.run([good])
    script = Path(experiment.folder) / "workload.py"
    script.write_text(script.read_text() + "\n# changed\n")
    status = status_of(experiment, store, {})
    assert status.stale == 1
    assert all(not item.runs for item in status.outcomes)


def test_flaky_trials_say_their_rate(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    lab.run([trial_named(experiment, "flaky")], repeats=6)
    found = _outcomes(experiment, store)["flaky"]
    assert (found.verdict, found.passes, found.runs) == ("flaky", 3, 6)
    assert found.pass_rate == pytest.approx((0.1876, 0.8124), abs=1e-4)
    assert "3 of 6 (50 %, 95 % interval 19 to 81 %) passed" in found.text
    conclusion = conclude(experiment, collect(experiment, store).outcomes)
    assert conclusion.status == "sometimes works"
    assert any("--repeats 12" in step for step in conclusion.next)


def test_a_program_that_is_not_there_is_infra_and_not_counted(write: Write, store: Store) -> None:
    experiment = load_experiment(write(('"python3"', '"no-such-program-anywhere"')))
    report = Laboratory(experiment, store).run(all_trials(experiment)[:1])
    assert "no-such-program-anywhere" in report.void["baseline"]
    found = _outcomes(experiment, store)["baseline"]
    assert (found.runs, found.verdict) == (0, "not run")
    assert "no-such-program-anywhere" in found.void


@pytest.mark.slow
def test_killed_in_the_middle_it_resumes_and_loses_nothing(write: Write, tmp_path: Path) -> None:
    path = write(("silence_s = 3", "silence_s = 20"))
    store_path = tmp_path / "store" / "evidence.sqlite"
    command = [sys.executable, "-m", "rocmend", "lab", "run", str(path), "--store", str(store_path)]
    only = ["--only", "good", "--only", "red", "--only", "baseline"]
    process = subprocess.Popen([*command, *only], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    told = (line for line in process.stderr if not line.startswith("rocmend lab run: "))  # a slow machine's progress
    lines = list(itertools.islice(told, 2))
    assert [line.split(":")[0] for line in lines] == ["good, run 1", "red, run 1"]
    bench = store_path.parent / "lab" / "made-up"
    deadline = time.monotonic() + 20
    while not any(item.name.startswith("baseline") for item in (bench / "begun").glob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    experiment = load_experiment(path)
    with Store.open(store_path) as store:
        assert status_of(experiment, store, {}).unrecorded == 1
        lab = Laboratory(experiment, store)
        report = lab.run([trial_named(experiment, name) for name in ("good", "red", "crash")])
        assert (report.kept, report.ran, report.recovered) == ({"good": 1, "red": 1}, {"crash": 1}, 0)
        assert status_of(experiment, store, {}).unrecorded == 0
        assert {item.evidence.subject for item in store.query(kind="trial")} == {"good", "red", "crash"}


def test_an_attempt_that_ended_unrecorded_is_recorded(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    trial = trial_named(experiment, "good")
    begun = Begun("good-x", "good", trial.settings, trial.definition, "identity")
    lab.bench.begin(begun)
    lab.bench.begin(msgspec.structs.replace(begun, attempt="good-y"))  # this one never ended
    with Journal(lab.bench.journal) as journal:
        run_attempt(lab._spec(trial, "good-x"), journal=journal, attempt_id="good-x")
    report = lab.run([trial])
    assert (report.recovered, report.kept, report.ran) == (1, {"good": 1}, {})
    assert [item.evidence.verdict for item in store.query(kind="trial")] == [Verdict.PASS]
    lab.bench.begin(begun)  # killed between recording and forgetting
    assert lab.recover() == 0
    assert len(list(store.query(kind="trial"))) == 1


def test_a_quarantined_host_starts_nothing_until_it_boots_anew(
    experiment: Experiment, store: Store, tmp_path: Path
) -> None:
    boot = tmp_path / "root" / "proc" / "sys" / "kernel" / "random" / "boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("first\n")
    lab = Laboratory(experiment, store, root=tmp_path / "root")
    lab.bench.keep(State(Standstill("first", "the GPU was reset")))
    good = trial_named(experiment, "good")
    with pytest.raises(QuarantinedError, match="the GPU was reset"):
        lab.run([good])
    assert status_of(experiment, store, {}).quarantine == "the GPU was reset"
    assert lab.run([good], release=True).ran == {"good": 1}
    lab.bench.keep(State(Standstill("first", "the GPU was reset")))
    boot.write_text("second\n")
    assert Laboratory(experiment, store, root=tmp_path / "root").run([good], repeats=2).ran == {"good": 1}
    assert lab.bench.state().quarantine is None


def test_minimize_finds_what_matters(lab: Laboratory, experiment: Experiment, store: Store) -> None:
    found = minimize(lab, trial_named(experiment, "baseline"), trial_named(experiment, "red"))
    assert found.minimal == {"mode": "good"}
    assert found.no_difference == ("colour",)
    assert (found.first_text, found.second_text) == ("hang after load", "pass")
    trials = [step.trial for step in make_plan(experiment)]
    assert remembered(lab.bench, trials) == (found,)
    report = report_of(experiment, store, {}, file="x.toml")
    assert report.minimized[0].text == (
        "MODE=good alone turns the hang after load of baseline into the pass of red. COLOUR makes no difference."
    )
    assert not any("minimize" in step for step in report.conclusion.next)


@pytest.mark.slow
def test_minimize_tells_flaky_from_steady(lab: Laboratory, experiment: Experiment) -> None:
    found = minimize(lab, trial_named(experiment, "baseline"), trial_named(experiment, "flaky"), repeats=2)
    assert found.minimal == {"mode": "flaky"}
    assert found.second_text == "3 x crash after compute, 3 x pass"  # twice, and thrice as often for it differed


def test_minimize_refuses_two_trials_that_come_out_alike(lab: Laboratory, experiment: Experiment) -> None:
    with pytest.raises(UsageError, match="too similar"):
        minimize(lab, trial_named(experiment, "good"), trial_named(experiment, "red"))


def test_a_stopped_run_counts_nothing_half_done(experiment: Experiment, store: Store) -> None:
    begun = time.monotonic()
    lab = Laboratory(experiment, store, stop=lambda: time.monotonic() > begun + 0.3)
    report = lab.run([trial_named(experiment, "baseline"), trial_named(experiment, "good")])
    assert report.stopped
    assert (report.ran, set(report.void)) == ({}, {"baseline"})
    assert all(not item.runs for item in _outcomes(experiment, store).values())
