from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner, Result

from rocmend.cli.main import cli
from rocmend.cli.source import take_snapshot
from rocmend.cli.views.probe import diff_document, grouped, run_document
from rocmend.core.evidence import Evidence, PhaseSpan
from rocmend.core.examples import MACHINES
from rocmend.core.verdict import Verdict
from rocmend.probe.diff import diff
from rocmend.probe.records import ProbeRun, Subject
from rocmend.report import html, markdown
from rocmend.report.document import Tone
from rocmend.store.store import Store

from .conftest import FAULTS

Make = Callable[..., Evidence]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def made(*results: Evidence, gfx_target: str = "gfx1010", quarantine: str = "") -> ProbeRun:
    subject = Subject("/usr/bin/python3", "cuda", "Radeon RX 5600 XT", gfx_target, {"torch": "2.9.0"})
    not_run = ("matmul:float32",) if quarantine else ()
    return ProbeRun("probe-a", subject, results, quarantine=quarantine, not_run=not_run)


PASSED = Evidence("probe", "matmul:float32", "id", Verdict.PASS, "", "2026-01-02T03:04:05+00:00", 1.0)
UNCLEAN = {
    "failed": msgspec.structs.replace(PASSED, verdict=Verdict.CRASH),
    "order": msgspec.structs.replace(PASSED, detail={"shared_attempt": {}}),
}


@pytest.mark.parametrize("what", ["clean", "failed", "order", "not run", "quarantine"])
def test_probe_and_check_agree_on_what_is_clean(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = made(UNCLEAN.get(what, PASSED), quarantine="it was reset" if what == "quarantine" else "")
    if what == "not run":
        run = msgspec.structs.replace(run, not_run=("add:float32",))
        assert "1 probe not run" in markdown.render(run_document(run))
    monkeypatch.setattr("rocmend.probe.run.run_probes", lambda *_, **__: run)
    healthy = take_snapshot(MACHINES / "strix-halo-healthy")
    for command in ("check", "probe_run"):
        monkeypatch.setattr(f"rocmend.cli.commands.{command}.take_snapshot", lambda *_, **__: healthy)
    expected = 0 if what == "clean" else 1
    assert invoke("check", "--no-store", "-o", str(tmp_path / "r.html")).exit_code == expected
    assert invoke("probe", "run", "--no-store").exit_code == expected


def test_the_list_needs_no_command_name() -> None:
    result = invoke("probe", "--list", "--select", "fft", "--json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)["data"]
    assert {row["family"] for row in data["probes"]} == {"fft"}
    assert data["problems"] == []


def test_the_group_has_a_help_of_its_own() -> None:
    assert "diff" in invoke("probe", "--help").stdout


def test_what_fits_nothing_is_said_before_anything_is_started() -> None:
    result = invoke("probe", "--select", "no-such-probe")
    assert result.exception is not None
    assert "no-such-probe" in str(result.exception)


@pytest.mark.parametrize("arguments", [("--env", "NAMEONLY"), ("--no-store", "--resume", "x"), ("--jobs", "0")])
def test_wrong_options(arguments: tuple[str, ...]) -> None:
    assert invoke("probe", *arguments).exit_code != 0


@pytest.mark.slow
@pytest.mark.cpu
def test_a_run_on_the_cpu_in_every_format(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    store, report = str(tmp_path / "e.sqlite"), tmp_path / "r.html"
    result = invoke(
        "probe", "--device", "cpu", "--select", "add:float32", "--store", store, "-o", str(report), "--format", "junit"
    )
    assert result.exit_code == 0, result.output
    suite = ET.fromstring(result.stdout).find("testsuite")  # noqa: S314  it is our own
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert "The worst verdict of each family" in report.read_text()
    with Store.open(Path(store)) as kept:
        group = kept.groups()[0].group
        row = next(kept.query(group=group)).evidence
        assert kept.machine(row.machine).facts
    again = invoke("probe", "--store", store, "--resume", "last", "--json")
    assert [len(json.loads(again.stdout)["data"]["results"]), json.loads(again.stdout)["data"]["resumed"]] == [1, 1]
    assert f"{group} was complete: nothing was left to run." in again.stderr
    other = invoke("probe", "--select", "add", "--store", store, "--resume", group)
    assert other.exit_code != 0
    compared = invoke("probe", "diff", group, "last", "--store", store, "--json")
    assert compared.exit_code == 0
    assert json.loads(compared.stdout)["data"]["same"] == 1


CATALOGUE = """
from rocmend.probe.case import Case
from rocmend.probe.registry import Family, registry

registry.load()
family = Family("plan", tags=())
for name in {names}:
    family.probe("plan-" + name, "it doubles", ("float32",))(lambda ctx: Case(lambda x: x * 2, (ctx.randn(100),)))
"""


@pytest.mark.slow
@pytest.mark.cpu
def test_a_run_goes_on_with_what_it_was_begun_for_whatever_the_catalogue_has_by_now(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def probe(names: str, *words: str) -> dict[str, Any]:
        (tmp_path / "sitecustomize.py").write_text(CATALOGUE.format(names=list(names)))
        done = subprocess.run(
            [Path(sys.executable).with_name("rocmend"), "probe", *words, "--store", tmp_path / "e.sqlite", "--json"],
            env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in {0, 1}, done.stderr
        data: dict[str, Any] = json.loads(done.stdout)["data"]
        return data

    begun = probe("ab", "--device", "cpu", "--select", "plan-*")
    assert [one["subject"] for one in begun["results"]] == ["plan-a:float32", "plan-b:float32"]
    again = probe("ac", "--resume", "last")
    assert [one["subject"] for one in again["results"]] == ["plan-a:float32", "plan-b:float32"]
    with Store.open(tmp_path / "e.sqlite") as store:  # as a run that was cut short
        store.remove([row.id for row in store.query() if row.evidence.subject == "plan-b:float32"])
    again = probe("ac", "--resume", "last")
    assert [one["subject"] for one in again["results"]] == ["plan-a:float32"]
    assert again["not_run"] == ["plan-b:float32"]


@pytest.mark.cpu
@pytest.mark.parametrize("done", [1, 0])
def test_an_interrupted_run_says_how_to_go_on_and_leaves_no_process(done: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "e.sqlite"
    chosen = ["--select", "memory-small"] * done + ["--select", "test-wait"]
    arguments = ["probe", "--device", "cpu", *chosen, "--store", str(path)]
    process = subprocess.Popen(
        # a shell's job in the background ignores the signal of Ctrl-C, and so would what it starts
        ["env", "--default-signal=INT", sys.executable, "-m", "rocmend", *arguments],
        env={**os.environ, "PYTHONPATH": str(FAULTS), "ROCMEND_TEST_COUNT": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(tmp_path.glob("waits-*")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.startswith("rocmend probe: reading the machine")
    again = f"rocmend probe run {' '.join(arguments[1:])}"
    if not done:
        assert f"Nothing was done yet. To start again: {again}" in said
    with Store.open(path) as store:
        rows = list(store.query())
    assert [row.evidence.subject for row in rows] == ["memory-small:float32"] * done
    for row in rows:
        assert (
            f"1 of 2 are done and kept. To go on: rocmend probe --resume {row.evidence.group} --store {path}\n" in said
        )
    (waiting,) = tmp_path.glob("waits-*")
    with pytest.raises(ProcessLookupError):
        os.kill(int(waiting.name.partition("-")[2]), 0)


def test_a_run_reads_as_what_works_and_what_does_not(evidence: Make) -> None:
    run = made(
        evidence("matmul:float32"),
        evidence("conv2d:float32", Verdict.HANG, family="convolution", knowledge=("rdna1-conv",), trace="Traceback"),
        evidence("conv2d:float16", Verdict.HANG, family="convolution"),
        evidence("streams:float32", Verdict.SKIPPED, family="graphs"),
    )
    document = run_document(run)
    text = markdown.render(document)
    assert "1 of 3 probes passed on Radeon RX 5600 XT (gfx1010), 1 did not apply." in text
    assert "wrong with: convolution" in text
    assert "hang 0/1" in text
    assert "rdna1-conv" in text
    assert document.tone is Tone.ERROR


def test_what_failed_is_a_hot_cell_that_leads_to_why_and_to_where_it_fell_silent(evidence: Make) -> None:
    import msgspec

    spans = (PhaseSpan("import", 0, 1000), PhaseSpan("launch", 1000, 9000))
    hung = msgspec.structs.replace(evidence("conv:float16", Verdict.HANG), timeline=spans, last_phase="launch")
    page = html.render(run_document(made(evidence("fft:float32"), hung)))
    assert '<table class="heat">' in page
    assert '<td class="error"><a href="#conv-float16">hang 0/1</a></td>' in page
    assert 'id="conv-float16"' in page
    assert '<b class="error">hang after launch</b>' in page
    assert "<title>launch 8 s</title>" in page


def test_a_run_on_the_cpu_claims_nothing_about_a_gpu(evidence: Make) -> None:
    assert "nothing about a GPU" in markdown.render(run_document(made(evidence(), gfx_target="cpu")))


def test_a_stopped_run_says_so(evidence: Make) -> None:
    text = markdown.render(run_document(made(evidence(verdict=Verdict.GPU_RESET), quarantine="the GPU was reset")))
    assert "stopped, with 1 probe to go: the GPU was reset" in text


def test_failures_with_one_reason_stand_together(evidence: Make) -> None:
    import msgspec

    hung = [evidence(f"conv{number}:float32", Verdict.HANG) for number in range(3)]
    hung = [msgspec.structs.replace(each, reason=f"silent for {n}.5 s") for n, each in enumerate(hung)]
    groups = grouped([evidence("x:float32", Verdict.WRONG_OUTPUT), *hung])
    assert [len(group) for group in groups] == [3, 1]


def test_a_diff_reads_as_what_changed(evidence: Make) -> None:
    before = {"a:float32": evidence("a:float32", steady_ms=1.0), "b:float32": evidence("b:float32", Verdict.HANG)}
    after = {
        "a:float32": evidence("a:float32", steady_ms=4.0),
        "b:float32": evidence("b:float32"),
        "c:int8": evidence("c:int8"),
    }
    text = markdown.render(diff_document(diff(before, after)))
    assert "4.00x" in text
    assert "1 fixed, 1 time; 0 the same." in text
    assert "c:int8" in text
