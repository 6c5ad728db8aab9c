"""The benchmark commands: what is listed, refused, measured, kept and gone on with."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.bench.case import Case, Setting
from rocmend.bench.records import BenchRun, Measured, evidence_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.bench.suite import Bound
from rocmend.bench.suites import gemm_cases
from rocmend.cli.views.bench import run_document, run_summary
from rocmend.cli.views.bench_figures import interval_text
from rocmend.cli.views.store import record_document
from rocmend.core.verdict import Verdict
from rocmend.report import markdown, terminal
from rocmend.report.document import Tone
from rocmend.store.records import StoredEvidence
from rocmend.store.store import Store

from .conftest import Done

Run = Callable[..., Done]
OLD = "bench-gemm-20260101-000000-aaaa"
SMALL = ("bench", "gemm", "--device", "cpu", "--time", "50ms", "--quick", "--dtype", "fp32", "--shape", "16x16x16")


def test_cases_and_settings_are_listed_and_nothing_is_started(rocmend: Run, tmp_path: Path) -> None:
    store = tmp_path / "none.sqlite"
    done = rocmend("bench", "gemm", "--shape", "8x16x32", "--list", "--json", "--store", store)
    data = json.loads(done.out)["data"]
    assert done.code == 0
    assert [case["id"] for case in data["cases"]] == ["gemm/bfloat16/8x16x32/nn"]
    assert not store.exists()
    assert "1 case under 4 settings." in rocmend("bench", "gemm", "--shape", "8x16x32", "--list").out


def test_the_list_and_the_help_estimate_what_a_preset_takes(rocmend: Run) -> None:
    done = rocmend("bench", "gemm", "--device", "cpu", "--list", "--json")
    data = json.loads(done.out)["data"]
    assert [setting["id"] for setting in data["settings"]] == ["default"]
    least, most = data["estimate"]["timing_s"]
    assert 10 < least < most < 120
    assert 64 << 20 <= data["estimate"]["memory_bytes"] < 1 << 30
    shown = " ".join(rocmend("bench", "gemm", "--quick", "--list").out.split())
    assert "8 cases under 4 settings. Timing takes 19.2 s to 32 s, with preparing and checking about 5 min" in shown
    assert data["estimate"]["whole_s"] == most + 8 * len(data["cases"])
    assert "Memory: up to 576 MiB" in shown
    told = " ".join(rocmend("bench", "gemm", "--help").out.split())
    assert "quick (8 products, timed 12.8 s or more" in told
    assert f"standard ({len(gemm_cases.preset_cases('standard', []))} products" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--select", "gemm/bfloat16/1024x1024x1025*"), "--list shows"),
        (("--setting", "defualt"), "default"),
        (("--shape", "8x8"), "4096x4096x4096"),
        (("--shape", "99999999x1x1"), "is too large: a side has 9,999,999 at most"),
        (("--no-store", "--resume", "last"), "--no-store"),
    ],
)
def test_what_fits_nothing_is_a_usage_error(rocmend: Run, words: tuple[str, ...], said: str) -> None:
    done = rocmend("bench", "gemm", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.slow
@pytest.mark.cpu
def test_a_run_is_measured_kept_and_gone_on_with(installed: Run, tmp_path: Path) -> None:
    store = ("--store", str(tmp_path / "evidence.sqlite"))
    first = installed(*SMALL, *store, "--json")
    assert first.code == 0, first.err
    data = json.loads(first.out)["data"]
    run = msgspec.convert(data, BenchRun, strict=False)
    (result,) = run.results
    assert result.figure == data["results"][0]["figure"] > 0
    assert data["results"][0]["low"] <= result.figure <= data["results"][0]["high"]
    assert (result.subject.gfx_target, len(result.blocks)) == ("cpu", 10)
    again = installed("bench", "gemm", *store, "--resume", "last", "--format", "jsonl")
    assert json.loads(again.out) == {"group": run.group, **data["results"][0]}
    assert f"{run.group} was complete: nothing was left to measure." in again.err
    # it is found by a beginning of its id; neither other options nor another benchmark get into it
    assert installed("bench", "gemm", *store, "--resume", run.group[:-2], "--dtype", "fp32", "--json").code == 0
    for words, said in (
        (("gemm", "--resume", "last", "--shape", "32x32x32"), "was begun with `--shape 16x16x16`"),
        (("gemm", "--resume", "last", "--setting", "default"), "was begun without it"),
        (("nn", "--resume", run.group), f"{run.group} is a run of bench gemm, not of bench nn."),
        (("gemm", "--resume", "bench-gemm-1999"), "rocmend store ls --groups"),
        (("nn", "--resume", "last"), "the store has no run of `rocmend bench nn`"),
    ):
        refused = installed("bench", *words, *store)
        assert (refused.code, refused.out) == (2, ""), words
        assert said in " ".join(refused.err.split())
    with Store.open(Path(store[1])) as kept:
        assert [(one.group, sum(one.verdicts.values())) for one in kept.groups()] == [(run.group, 1)]


@pytest.mark.slow
@pytest.mark.cpu
def test_a_run_that_does_not_say_what_it_was_asked_for_is_not_widened(installed: Run, tmp_path: Path) -> None:
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        store.add(evidence_of(_measured(Case("gemm/a", "gemm", {}, "TFLOPS", 4e12), Setting("default"), 1.0), OLD))
    refused = installed("bench", "gemm", "--resume", "last", "--store", str(path))
    assert (refused.code, refused.out) == (2, "")
    assert "does not say what it was asked for" in refused.err
    done = installed(*SMALL, "--resume", "last", "--store", str(path), "--json")
    assert "what it lacks of the options given now is done" in done.err
    assert [one["case"]["id"] for one in json.loads(done.out)["data"]["results"]] == ["gemm/float32/16x16x16/nn"]


def test_going_on_with_nothing_leaves_no_store_behind(installed: Run, tmp_path: Path) -> None:
    for command in (("bench", "gemm"), ("probe",)):
        done = installed(*command, "--resume", "last", "--store", str(tmp_path / "none.sqlite"))
        assert (done.code, done.out) == (2, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.cpu
@pytest.mark.slow
def test_a_device_that_is_not_there_is_an_error_and_says_what_to_do(installed: Run) -> None:
    done = installed(*SMALL, "--no-store", "--device", "cuda:77")
    assert (done.code, done.out) == (2, "")
    assert "cuda:77 was asked for" in done.err
    assert "--device cpu" in done.err


def test_an_interpreter_without_torch_is_named(installed: Run, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\nexec /usr/bin/env python3 -S "$@"\n')
    bare.chmod(0o755)
    done = installed(*SMALL, "--no-store", "--python", str(bare))
    assert (done.code, done.out) == (2, "")
    assert "rocmend: [" in done.err


def _measured(case: Case, setting: Setting, seconds: float | None) -> Measured:
    verdict = Verdict.PASS if seconds else Verdict.WRONG_OUTPUT
    subject = Subject("gfx1151", "cuda:0", "Radeon 8060S", {"torch": "2.11"})
    prepared = Prepared(verdict, "" if seconds else "error 0.5 of the sum", 0.25, subject=subject)
    blocks = tuple((seconds * (1 + 0.001 * n),) * 3 for n in range(6)) if seconds else ()
    summary = summarize(blocks) if seconds else None
    bounds = (Bound(8.0, "peak", "product table"),)
    return Measured(case, verdict, prepared.reason, prepared, blocks, summary, "2026-01-01", 1.0, setting, bounds)


def test_a_run_answers_first_and_shows_figures_side_by_side() -> None:
    cases = [Case(f"gemm/{name}", "gemm", {}, "TFLOPS", 4e12) for name in ("a", "b")]
    settings = (Setting("lt=0", {"LT": "0"}), Setting("lt=1", {"LT": "1", "OLD": None}))
    seconds = {("gemm/a", "lt=0"): 1.0, ("gemm/a", "lt=1"): 1.25, ("gemm/b", "lt=0"): 1.0}
    results = tuple(_measured(case, one, seconds.get((case.id, one.id))) for case in cases for one in settings)
    document = run_document(BenchRun("bench-gemm-1", "gemm", "Matrix products", settings, results))
    text = markdown.render(document)
    assert document.summary.startswith("lt=1 against lt=0, 1 case: slower in 1")
    assert "3 of 4 figures measured on Radeon 8060S (gfx1151)" in document.summary
    assert "1 result is wrong and without a figure" in document.summary
    assert document.tone is Tone.ERROR
    assert "(50 %) | 3.192" in text
    assert "0.80x slower |" in text
    assert "wrong-output" in text
    assert "LT=1" in text
    drawn = io.StringIO()
    terminal.render(document, drawn, width=80)
    assert max(map(len, drawn.getvalue().splitlines())) <= 80


def test_a_figure_with_an_interval_that_says_nothing_is_uncertain_and_busy_ones_are_no_answer() -> None:
    one = _measured(Case("gemm/a", "gemm", {}, "TFLOPS", 4e12), Setting("default"), 1.0)
    assert one.summary is not None
    wild = msgspec.structs.replace(one, summary=msgspec.structs.replace(one.summary, low=1e-9, high=9.0))
    assert interval_text(wild) == "4.0, uncertain"
    busy = msgspec.structs.replace(one, waited=(0.84,) * 6)
    summary, _ = run_summary(BenchRun("g", "gemm", "Matrix products", (one.setting,), (busy,)))
    assert summary == (
        "This machine was busy: 84 % of the time went by waiting for a processor. This figure can't be relied on: "
        "run it again on an idle machine. 1 of 1 figure measured on Radeon 8060S (gfx1151)."
    )
    other = _measured(Case("gemm/b", "gemm", {}, "TFLOPS", 4e12), Setting("default"), 1.0)
    summary, tone = run_summary(BenchRun("g", "gemm", "Matrix products", (one.setting,), (busy, other)))
    assert summary.startswith("1 of 2 figures can't be relied on: this machine was busy")
    assert tone is Tone.WARNING


def test_a_record_of_a_benchmark_says_its_figure_first() -> None:
    one = _measured(Case("gemm/a", "gemm", {}, "TFLOPS", 4e12), Setting("default"), 1.0)
    document = record_document(StoredEvidence("1", evidence_of(one, "g")), None, {})
    assert re.fullmatch(r"pass: 3\.99\d+ ±0\.\d+ TFLOPS", document.summary)
    assert "case=id" not in markdown.render(document)


def test_a_figure_whose_clocks_were_not_steady_is_marked_and_says_why() -> None:
    setting = Setting("default")
    sensors = {
        "clock_mhz": {"mean": 2600.0, "low": 2300.0, "high": 2900.0},
        "temperature_c": {"mean": 94.0, "low": 93.5, "high": 94.5},
        "throttle": {"temperature": 0.4},
        "notes": ["throttled by temperature in 40% of the readings"],
    }
    cases = [Case(f"gemm/{name}", "gemm", {}, "TFLOPS", 4e12) for name in ("a", "b")]
    hot, cool = (_measured(case, setting, 1.0) for case in cases)
    detail = {"steady": False, "launch_share": 0.96}
    prepared = msgspec.structs.replace(hot.prepared, detail=detail)
    results = (msgspec.structs.replace(hot, telemetry=sensors, prepared=prepared), cool)
    notes = ("this machine runs on its battery",)
    text = markdown.render(run_document(BenchRun("bench-1", "gemm", "Products", (setting,), results, notes=notes)))
    assert "*" in text.split("| a |")[1].split("|")[0]
    assert "*" not in text.split("| b |")[1].split("|")[0]
    assert "a (default): throttled by temperature in 40% of the readings." in text
    assert "| a | 2,600 (2,300 to 2,900) | 94 |" in text
    assert "a (default): its time still changed when warming up ended." in text
    assert "a (default): launched by the CPU in 96 % of its time: this is the speed of launches" in text
    assert "This machine runs on its battery." in text


@pytest.mark.cpu
@pytest.mark.slow
def test_memory_is_measured_and_drawn(installed: Run, tmp_path: Path) -> None:
    page = tmp_path / "memory.html"
    sizes = [word for size in ("4KiB", "8KiB", "16KiB") for word in ("--size", size)]
    done = installed(
        *("bench", "memory", "--device", "cpu", "--quick", "--time", "20ms", "--select", "host/copy/*", "--no-store"),
        *(*sizes, "-o", str(page)),
    )
    assert done.code == 0, done.err
    text = page.read_text(encoding="utf-8")
    assert text.count("host copy") >= 3
    assert '<figure class="picture plot">' in text
    assert "torch runs on the CPU here" in text
    refused = installed("bench", "memory", "--size", "3B")
    assert (refused.code, "64MiB" in refused.err) == (2, True)


@pytest.mark.cpu
def test_a_setting_that_means_nothing_here_says_why(installed: Run) -> None:
    done = installed(*SMALL, "--no-store", "--setting", "hipblaslt")
    assert (done.code, done.out) == (2, "")
    assert "is a CPU" in done.err


def test_a_wide_interval_is_shown_by_its_ends() -> None:
    case, setting = Case("gemm/a", "gemm", {}, "TFLOPS", 4e12), Setting("default")
    blocks = tuple((seconds,) * 3 for seconds in (1.0, 1.1, 1.0, 4.0, 0.9, 1.0, 5.0, 6.0))
    found = msgspec.structs.replace(_measured(case, setting, 1.0), blocks=blocks, summary=summarize(blocks))
    text = markdown.render(run_document(BenchRun("bench-1", "gemm", "Products", (setting,), (found,))))
    assert " to 4" in text.split("| a |")[1].split("|")[0]
    assert "±" not in text.split("| a |")[1].split("|")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("memory", "--size", "1PiB"), "1024 TiB is too large: 64 GiB at most"),
        (("memory", "--size", "0"), "'0' is less than a byte. Write 18GB"),
        (("memory", "--size", "6B"), "6 bytes is no multiple of 4"),
        (("serve", "--url", "notaurl.invalid"), "[notaurl.invalid] the server can't be reached"),
        (("serve", "--url", "http://127.0.0.1:1"), "Connection refused"),
        (("import", "none.jsonl"), "there is no file or folder none.jsonl. Give what llama-bench printed"),
    ],
)
def test_an_error_says_what_and_what_to_do(installed: Run, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = installed("bench", *words, "--store", str(tmp_path / "e.sqlite"))
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.cpu
def test_on_a_cpu_nothing_is_said_of_what_a_gpu_has(installed: Run) -> None:
    refused = installed("bench", "memory", "--device", "cpu", "--select", "device/*", "--no-store")
    assert (refused.code, "'device/*' needs a GPU, and --device cpu was given" in refused.err) == (2, True)
    done = installed(*SMALL, "--no-store")
    assert "torch chooses" in done.out
    assert not re.search("rocBLAS choose|tunableop", done.out)


def test_a_store_that_cannot_be_made_names_the_way_out(installed: Run) -> None:
    done = installed(*SMALL, ROCMEND_HOME="/proc/none")
    assert (done.code, done.out) == (2, "")
    said = " ".join(done.err.split())
    assert "[/proc/none/evidence.sqlite] The store can't be used: No such file or directory" in said
    assert "--store or ROCMEND_HOME" in said
    assert "--no-store" in said


def test_a_folder_without_results_is_said_to_hold_none(installed: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    done = installed("bench", "import", str(tmp_path), "--store", str(tmp_path / "e.sqlite"))
    assert (done.code, "Nothing was kept." in done.out, "lists it" in done.out) == (1, True, False)


def test_each_marked_figure_is_named_in_the_details() -> None:
    case = [Case(f"gemm/{name}", "gemm", {}, "TFLOPS", 4e12) for name in "abc"]
    results = [_measured(one, Setting("default"), 1.0) for one in case]
    hot = tuple(msgspec.structs.replace(one, telemetry={"notes": ["throttled by heat in 30 %"]}) for one in results)
    run = BenchRun("bench-gemm-1", "gemm", "Products", (Setting("default"),), hot)
    short, whole = io.StringIO(), io.StringIO()
    terminal.render(run_document(run), short, width=80)
    terminal.render(run_document(run), whole, width=80, details=True)
    assert "2 more like it" in short.getvalue()
    assert "c (default)" not in short.getvalue()
    assert all(re.search(rf"{name} \(default\) +throttled by heat", whole.getvalue()) for name in "abc")


def test_a_device_that_there_is_not_is_refused_in_words(rocmend: Run) -> None:
    done = rocmend("bench", "gemm", "--device", "foo")
    assert (done.code, done.out) == (2, "")
    assert "'foo' is no device" in done.err
    assert "Write auto, cpu, cuda or e.g. cuda:1" in " ".join(done.err.split())


def test_a_run_without_a_result_is_not_called_kept() -> None:
    setting = Setting("default")
    run = BenchRun("bench-nn-20260101-000000-aaaa", "nn", "Networks", (setting,), (), not_run=("nn/vit @ default",))
    assert "Kept as" not in markdown.render(run_document(run))


def test_the_highest_of_unlike_cases_is_no_answer() -> None:
    def made(name: str, seconds: float) -> Measured:
        blocks = ((seconds,) * 3,) * 6
        case = Case(f"nn/{name}", "nn", {}, "img/s", 1.0)
        return Measured(case, Verdict.PASS, "", Prepared(Verdict.PASS), blocks, summarize(blocks), "2026-01-31", 1.0)

    many = BenchRun("", "nn", "Networks", (Setting("default"),), (made("resnet18", 0.01), made("vit", 0.1)))
    assert "The highest is" not in run_summary(many)[0]
