"""Probes in children of their own, through the supervisor."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.probe import launch
from rocmend.probe.launch import ProbeError
from rocmend.probe.registry import probes
from rocmend.probe.run import run_probes
from rocmend.runner.spec import Limits
from rocmend.store.store import Store

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True)
def _torch() -> None:
    pytest.importorskip("torch")


@pytest.mark.slow
def test_faults_in_children_are_told_apart_and_take_nothing_with_them(faults: dict[str, str], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with Store.open(tmp_path / "evidence.sqlite") as store:
        run = run_probes(
            ["fault-*"],
            device="cpu",
            jobs=2,
            env=faults,
            silence_s=6,
            store=store,
            on_result=lambda _, done, total: seen.append((done, total)),
        )
        kept = {row.evidence.subject: row.evidence for row in store.query(group=run.group)}
    verdicts = {result.subject.partition(":")[0]: result.verdict for result in run.results}
    assert verdicts == {
        "fault-counted": Verdict.PASS,
        "fault-hang": Verdict.HANG,
        "fault-memory": Verdict.OOM,
        "fault-none": Verdict.PASS,
        "fault-segfault": Verdict.CRASH,
        "fault-wrong": Verdict.WRONG_OUTPUT,
    }
    assert seen == [(number, 6) for number in range(1, 7)]
    assert kept.keys() == {result.subject for result in run.results}
    hung = kept["fault-hang:float32"]
    assert hung.last_phase == "first-run"
    assert "first-run" in hung.reason
    assert [span.name for span in hung.timeline][-4:] == ["import", "context", "setup", "first-run"]
    assert any(artifact.name.startswith("stack") for artifact in hung.artifacts)
    assert run.subject.gfx_target == "cpu"
    assert run.subject.versions["torch"]


@pytest.mark.slow
def test_no_operation_meets_what_another_has_changed(faults: dict[str, str]) -> None:
    run = run_probes(["state-*"], device="cpu", env=faults)
    assert [result.verdict for result in run.results] == [Verdict.PASS] * 3
    assert not any("shared_attempt" in result.detail for result in run.results)
    assert [result.detail["changed"] for result in run.results] == [
        ["environment variables", "default dtype", "number of threads"],
        [],
        [],
    ]


@pytest.mark.slow
def test_what_fails_only_after_others_is_repeated_alone_and_said(faults: dict[str, str]) -> None:
    run = run_probes(["order-*", "memory-*"], device="cpu", env=faults)
    results = {result.subject.partition(":")[0]: result for result in run.results}
    assert {result.verdict for result in run.results} == {Verdict.PASS}
    assert {name: result.detail["process"] for name, result in results.items()} == {
        "memory-large": "shared",
        "memory-small": "shared",
        "order-a": "shared",
        "order-b": "own",
    }
    assert run.order_dependent == (results["order-b"],)
    first = results["order-b"].detail["shared_attempt"]
    assert first["verdict"] == "wrong-output"
    assert first["after"] == ("memory-large:float32", "memory-small:float32", "order-a:float32")
    assert "after 3 others in one process" in results["order-b"].reason
    # an operation's memory is its own, whatever ran in the process before
    assert 60 << 20 < results["memory-large"].detail["peak_memory_bytes"] < 80 << 20
    assert results["memory-small"].detail["peak_memory_bytes"] < 8 << 20


@pytest.mark.slow
def test_what_compiles_declares_that_it_needs_a_process_of_its_own() -> None:
    assert {probe.family for probe in probes() if probe.alone} == {"compile", "distributed"}


@pytest.mark.slow
def test_a_run_is_resumed_where_it_ended(faults: dict[str, str], tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    starts.mkdir()
    env = {**faults, "ROCMEND_TEST_COUNT": str(starts)}
    with Store.open(tmp_path / "evidence.sqlite") as store:
        both = ["fault-counted", "fault-none"]
        first = run_probes(both, device="cpu", env=env, store=store, isolate=True)
        store.remove([row.id for row in store.query() if row.evidence.subject.startswith("fault-none")])
        again = run_probes(both, device="cpu", env=env, store=store, resume="last")
    assert len(list(starts.iterdir())) == 1
    assert (again.group, again.resumed) == (first.group, 1)
    assert [result.detail["process"] for result in again.results] == ["own", "shared"]
    assert [result.verdict for result in again.results] == [Verdict.PASS, Verdict.PASS]


@pytest.mark.slow
def test_a_host_that_is_not_to_be_trusted_gets_no_more_work(
    faults: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import msgspec

    from rocmend.runner.run import run_attempt as real

    def quarantined(spec: object, **settings: object) -> object:
        result = real(spec, **settings)  # type: ignore[arg-type]
        if result.name.startswith("fault"):
            return msgspec.structs.replace(
                result, verdict=Verdict.GPU_RESET, reason="reset", quarantine="the GPU was reset"
            )
        return result

    monkeypatch.setattr(launch, "run_attempt", quarantined)
    run = run_probes(["fault-counted", "fault-none"], device="cpu", env=faults)
    assert [result.verdict for result in run.results] == [Verdict.GPU_RESET]
    assert run.not_run == ("fault-none:float32",)
    assert run.quarantine == "the GPU was reset"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first use of the device be silent for a second and a half."""
    short = Limits(total_s=60, silence_s=60, phase_silence={"context": 1.5})
    monkeypatch.setattr(launch, "_START_LIMITS", short)


@pytest.mark.usefixtures("patient")
@pytest.mark.slow
def test_a_device_that_hangs_when_it_is_used_first_is_said_so(faults: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "device-hangs").touch()
    env = {**faults, "ROCMEND_TEST_COUNT": str(tmp_path)}
    with pytest.raises(ProbeError, match=r"first use of the device failed \(hang\): silent after phase context"):
        run_probes(["start-b"], device="cpu", env=env)


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
def test_a_process_that_cannot_be_replaced_is_said_and_each_verdict_stays_its_own(
    faults: dict[str, str], tmp_path: Path
) -> None:
    env = {**faults, "ROCMEND_TEST_COUNT": str(tmp_path)}
    run = run_probes(["start-*"], device="cpu", env=env, silence_s=2.5)
    assert [result.verdict for result in run.results] == [Verdict.PASS, Verdict.HANG]
    assert run.results[1].last_phase == "context"
    (note,) = run.notes
    assert note.startswith("torch could not be started again in a process for several probes (hang: silent after phase")


def test_an_interpreter_without_torch_is_said_so(tmp_path: Path) -> None:
    import sys

    alone = tmp_path / "python"
    alone.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" -S "$@"\n')
    alone.chmod(0o755)
    with pytest.raises(ProbeError, match="torch"):
        run_probes(["add:float32"], python=str(alone))


@pytest.mark.slow
def test_a_device_that_is_not_there_is_said_so() -> None:
    with pytest.raises(ProbeError, match="cuda:9"):
        run_probes(["add:float32"], device="cuda:9")


@pytest.mark.parametrize("settings", [{"jobs": 0}, {"resume": "probe-x"}, {"python": "no-such-python"}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        run_probes(["add:float32"], **settings)  # type: ignore[arg-type]


def test_there_is_no_such_run_to_resume(tmp_path: Path) -> None:
    with Store.open(tmp_path / "evidence.sqlite") as store, pytest.raises(UsageError, match="no run of probes"):
        run_probes(["add:float32"], store=store, resume="probe-nothing")
