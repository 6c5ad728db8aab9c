"""llama-bench of several generations is driven, judged and gone on with, whatever it does."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench import fake_llama as fake

from rocmend.bench.calibration import Calibration, Tried, calibrations_of
from rocmend.bench.llama.backends import Backend, find_backends
from rocmend.bench.llama.build import Build, Device, Help, parse_help
from rocmend.bench.llama.check import compare_perplexities, compare_texts, garbage
from rocmend.bench.llama.gguf import read_model
from rocmend.bench.llama.offload import Computed, judge, read_computed
from rocmend.bench.llama.options import Chosen
from rocmend.bench.records import BenchRun
from rocmend.cli.views.bench_calibration import calibrations
from rocmend.core.errors import DataError, UsageError
from rocmend.core.verdict import Verdict
from rocmend.report import markdown
from rocmend.report.document import Document
from rocmend.store.store import Store

from .conftest import Done

Rows = dict[tuple[str, str], dict[str, object]]
Bench = Callable[..., Rows]


@pytest.fixture
def bench(installed: Callable[..., Done], tmp_path: Path) -> Bench:
    """Run `rocmend bench llama` as it is installed, and return its rows by test and setting."""
    model = fake.write_model(tmp_path / "model-Q4_K_M.gguf")

    def run(*words: str, code: int = 0) -> Rows:
        done = installed(
            "bench", "llama", "--model", model, "--build", tmp_path, "--quick", "--time", "10ms",
            "--store", tmp_path / "evidence.sqlite", "--format", "jsonl", *words,
        )  # fmt: skip
        assert done.code == code, done.err
        assert "Traceback" not in done.err
        rows = [json.loads(line) for line in done.out.splitlines()]
        return {(row["case"]["title"], row["setting"]["id"]): row for row in rows}

    return run


def test_each_back_end_is_measured_at_each_depth(bench: Bench, installed: Callable[..., Done], tmp_path: Path) -> None:
    fake.write_program(tmp_path)
    rows = bench("--depth", "0,4096")
    assert [key for key in rows if key[1] == "rocm"] == [
        ("pp512", "rocm"), ("pp512 @ d4096", "rocm"), ("tg128", "rocm"), ("tg128 @ d4096", "rocm"),
    ]  # fmt: skip
    figures = {key: round(float(str(row["figure"]))) for key, row in rows.items()}
    assert figures["pp512", "rocm"] == 51200
    assert figures["pp512 @ d4096", "cpu"] == 12800
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(map(json.dumps, rows.values())))
    beside = installed("bench", "import", own, "--no-store", "--json")
    assert [one["figure"] for one in json.loads(beside.out)["data"]["results"]] == [
        pytest.approx(row["figure"]) for row in rows.values()
    ]
    row = rows["tg128", "rocm"]
    case, prepared = row["case"], row["prepared"]
    assert case["parameters"]["quantization"] == "Q4_K_M"  # type: ignore[index]
    assert prepared["subject"]["gfx_target"] == "gfx1151"  # type: ignore[index]
    assert prepared["detail"]["output"]["said"].startswith("the output was not checked")  # type: ignore[index]
    assert rows["tg128", "cpu"]["prepared"]["subject"]["gfx_target"] == "cpu"  # type: ignore[index]


@pytest.mark.slow
def test_the_batch_size_that_is_fastest_is_found_kept_and_taken(
    bench: Bench, installed: Callable[..., Done], tmp_path: Path
) -> None:
    faults = {"speeds": "ub64=0.5 ub128=0.7 ub256=0.9 ub1024=1.2 ub2048=1.2005", "pp2048-ub256": "abort"}
    fake.write_program(tmp_path, faults={**faults, "tg128": "nothing"})
    words = ("--calibrate", "--backend", "rocm", "--time", "30ms")
    first = bench(*words, code=1)
    assert {key: row["verdict"] for key, row in first.items()} == {
        ("pp512", "rocm,ub=auto"): "pass",
        ("tg128", "rocm,ub=auto"): "infra",
    }
    # 2048 is not shown to be faster than 1024, which is shown to be faster than the default
    command = first["pp512", "rocm,ub=auto"]["prepared"]["command"]  # type: ignore[index]
    assert command[command.index("-ub") + 1] == "1024"
    assert first["pp512", "rocm,ub=auto"]["setting"]["options"]["ubatch"] == 1024  # type: ignore[index]
    store = ("--store", tmp_path / "evidence.sqlite")
    (record,) = (
        json.loads(line)["evidence"]
        for line in installed("store", "ls", "--kind", "calibration", "--format", "jsonl", *store).out.splitlines()
    )
    found = record["detail"]["calibration"]
    tried = {one["name"]: one for one in found["tried"]}
    assert (found["chosen"], found["compared_with"], record["group"]) == (
        {"ubatch": 1024},
        "512",
        first["pp512", "rocm,ub=auto"]["group"],
    )
    assert (tried["256"]["verdict"], "abort" in tried["256"]["reason"] or "ROCm error" in tried["256"]["reason"]) == (
        "crash",
        True,
    )
    assert "low" not in tried["64"]
    assert tried["1024"]["comparison"]["difference"] == "faster"
    # going on takes what was found: 512 would be the fastest now
    fake.write_program(tmp_path, faults={"speeds": "ub1024=0.1"})
    group = str(first["pp512", "rocm,ub=auto"]["group"])
    again = bench(*words, "--resume", group)
    assert again["pp512", "rocm,ub=auto"]["started_at"] == first["pp512", "rocm,ub=auto"]["started_at"]
    resumed = again["tg128", "rocm,ub=auto"]
    command = resumed["prepared"]["command"]  # type: ignore[index]
    assert (resumed["verdict"], command[command.index("-ub") + 1]) == ("pass", "1024")
    report = installed("report", group, "--format", "md", *store)
    assert "1024 is taken" in report.out
    assert "ubatch 512: " in report.out
    assert "256 | crash" in report.out


@pytest.mark.slow
def test_an_interrupted_search_goes_on_with_its_rounds(bench: Bench, tmp_path: Path) -> None:
    mark, store = tmp_path / "mark", tmp_path / "evidence.sqlite"
    speeds = {"speeds": "ub64=0.5 ub128=0.7 ub256=0.9 ub1024=1.2 ub2048=1.2005"}
    fake.write_program(tmp_path, faults={**speeds, "pp2048-ub512": "waits-later", "mark": str(mark)})
    model = fake.write_model(tmp_path / "model-Q4_K_M.gguf")
    words = ("--calibrate", "--backend", "rocm", "--generate", "")
    command: list[str | Path] = [Path(sys.executable).with_name("rocmend"), "bench", "llama", "--model", model]
    command += ["--build", tmp_path]
    command += ["--quick", "--time", "10ms", "--store", store, *words]
    begun = subprocess.Popen(
        ["env", "--default-signal=INT", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while not Path(f"{mark}-2").exists() and begun.poll() is None:  # the default's second round
        select.select([], [], [], 0.05)
    begun.send_signal(signal.SIGINT)
    _, said = begun.communicate(timeout=60)
    assert begun.returncode == 130
    assert "What was tried before the first figure is kept. To go on: rocmend bench llama" in said
    fake.write_program(tmp_path, faults={**speeds, "pp2048-ub64": "abort", "pp2048-ub128": "abort"})
    (row,) = bench(*words, "--resume", "last").values()
    assert row["setting"]["options"]["ubatch"] == 1024  # type: ignore[index]
    with Store.open(store) as kept:
        (found, *_) = calibrations_of(kept, str(row["group"]))
    tried = {one.name: one for one in found.tried}
    assert [(tried[name].verdict, tried[name].rounds) for name in ("64", "128", "1024")] == [
        (Verdict.PASS, 1), (Verdict.PASS, 1), (Verdict.PASS, 3),
    ]  # fmt: skip


@pytest.mark.slow
def test_what_could_not_be_found_is_looked_for_again(bench: Bench, tmp_path: Path) -> None:
    words = ("--calibrate", "--backend", "rocm", "--generate", "", "--ubatch", "1024")
    fake.write_program(tmp_path, faults={"ROCm0": "nothing"})
    first = bench(*words, code=1)
    assert first["pp512", "rocm,ub=auto"]["verdict"] == "infra"
    fake.write_program(tmp_path, faults={"speeds": "ub1024=3"})
    again = bench(*words, "--resume", "last")
    assert again["pp512", "rocm,ub=auto"]["group"] == first["pp512", "rocm,ub=auto"]["group"]
    assert again["pp512", "rocm,ub=auto"]["setting"]["options"]["ubatch"] == 1024  # type: ignore[index]


@pytest.mark.slow
def test_the_default_stays_where_nothing_is_shown_to_be_faster(
    bench: Bench, installed: Callable[..., Done], tmp_path: Path
) -> None:
    fake.write_program(tmp_path, faults={"speeds": "ub1024=1.0005 ub256=0.9"})
    rows = bench("--calibrate", "--ubatch", "256,1024", "--backend", "rocm", "--generate", "")
    assert rows["pp512", "rocm,ub=auto"]["setting"]["options"]["ubatch"] == 512  # type: ignore[index]
    model = tmp_path / "model-Q4_K_M.gguf"
    words = ("bench", "llama", "--model", model, "--build", tmp_path, "--quick", "--time", "10ms", "--no-store")
    shown = installed(*words, "--calibrate", "--backend", "rocm", "--generate", "")
    assert "512 stays, the build's default: no other is shown to be" in " ".join(shown.out.split())
    words4096 = ("--calibrate", "--backend", "rocm", "--generate", "", "--ubatch", "512,3000,8192", "--json")
    (found,) = json.loads(installed(*words, *words4096).out)["data"]["calibrations"]
    assert (found["test"], found["sizes"]) == ("pp4096", [512, 3000, 8192])  # the model's context is 4096
    assert [one["name"] for one in found["tried"] if one["verdict"] != "pass"] == ["8192"]
    fake.write_program(tmp_path, old=True, faults={"speeds": ""})
    old = installed(*words, "--calibrate", "--backend", "rocm", "--generate", "", "--ubatch", "256,1024", "--json")
    (found,) = json.loads(old.out)["data"]["calibrations"]
    assert (found["option"], found["chosen"]) == ("batch", {"batch": 512})
    fake.write_program(tmp_path, faults={"ROCm0": "cpu"})
    fallen = installed(*words, "--calibrate", "--backend", "rocm", "--generate", "", "--format", "json")
    (found,) = json.loads(fallen.out)["data"]["calibrations"]
    assert (found["tried"], found["chosen"], found["text"].partition(":")[0]) == ([], {}, "silent-cpu-fallback")


def test_what_was_tried_is_shown_with_how_it_ended() -> None:
    def shown(chosen: dict[str, int], verdict: Verdict, *tried: Tried) -> list[list[str]]:
        base = "1024" if verdict is Verdict.PASS else ""
        found = Calibration(
            "rocm", "ubatch", "llama/m/pp2048", "pp2048", "tok/s", chosen, base, "text", tried, verdict=verdict
        )
        run = BenchRun("", "llama", "llama.cpp", (), (), calibrations=(found,))
        text = markdown.render(Document("llama.cpp", blocks=tuple(calibrations(run))))
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line]

    oom = Tried("default", {}, Verdict.OOM, "no memory is left", rounds=3)
    taken = Tried("1024", {"ubatch": 1024}, Verdict.PASS, figure=9.0, rounds=3)
    slow = Tried("64", {"ubatch": 64}, Verdict.PASS, figure=1.0)
    rows = shown({"ubatch": 1024}, Verdict.PASS, oom, slow, taken)
    assert [rows[0], *rows[2:]] == [
        ["ubatch", "tok/s", "against 1024", "rounds"],
        ["default", "oom", "no memory is left", "3"],
        ["64", "1.000", "out before the last round", "1"],
        ["1024, taken", "9.000", "", "3"],
    ]
    rows = shown({}, Verdict.OOM, oom)
    assert [rows[0], *rows[2:]] == [
        ["ubatch", "tok/s", "reason", "rounds"],
        ["default", "oom", "no memory is left", "3"],
    ]


@pytest.mark.slow
def test_each_gpu_and_all_of_them_are_measured(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"gpus": "2"})
    rows = bench("--generate", "", "--backend", "rocm", "--device", "each", "--device", "all")
    found = {setting: row["prepared"] for (_, setting), row in rows.items()}
    assert {setting: one["subject"]["device"] for setting, one in found.items()} == {  # type: ignore[index]
        "rocm:0": "ROCm0",
        "rocm:1": "ROCm1",
        "rocm:0+1": "ROCm0/ROCm1",
    }
    assert found["rocm:0+1"]["subject"]["device_name"] == "2x AMD Radeon Test"  # type: ignore[index]
    assert found["rocm:0+1"]["detail"]["options"]["devices"] == "ROCm0/ROCm1"  # type: ignore[index]
    assert list(bench("--generate", "", "--backend", "rocm")) == [("pp512", "rocm")]  # the first one, as ever


@pytest.mark.slow
def test_splits_are_settings_that_the_build_has(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"gpus": "2"})
    words = ("--generate", "", "--split-mode", "layer", "--split-mode", "row", "--split-mode", "none")
    rows = bench(*words, "--split-mode", "tensor", "--main-gpu", "1", code=1)  # not all of them are supported
    found = {setting: row["prepared"] for (_, setting), row in rows.items()}
    assert [(one["verdict"], one.get("subject", {}).get("device")) for one in found.values()] == [  # type: ignore[attr-defined, index]
        ("pass", "ROCm0/ROCm1"),
        ("pass", "ROCm0/ROCm1"),
        ("pass", "ROCm1"),
        ("unsupported", None),
        ("pass", "CPU"),  # it has no split
    ]
    assert list(found)[1] == "rocm:0+1,sm=row,mg=1"
    assert "no split mode tensor: it has none, layer, row" in str(list(rows.values())[3]["reason"])
    assert "does not say over which" in found["rocm:0+1,sm=row,mg=1"]["detail"]["doubt"]  # type: ignore[index]
    rows = bench("--generate", "", "--backend", "rocm", "--tensor-split", "3/1")
    command = rows["pp512", "rocm:0+1,ts=3/1"]["prepared"]["command"]  # type: ignore[index]
    assert command[command.index("-ts") + 1] == "3/1"


@pytest.mark.slow
def test_gpus_that_did_not_compute_are_found_out(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"gpus": "2", "holds": "ROCm0"})
    rows = bench("--generate", "", "--backend", "rocm", "--device", "each", "--device", "all", code=1)
    assert {setting: (row["verdict"], row.get("reason")) for (_, setting), row in rows.items()} == {
        "rocm:0": ("pass", ""),
        "rocm:1": ("infra", "ROCm1 was asked for, but the weights were on ROCm0"),
        "rocm:0+1": ("infra", "ROCm0 and ROCm1 were asked for, but the weights were on ROCm0"),
    }
    # a build that cannot be told its devices is shown one alone, which it calls the first
    fake.write_program(tmp_path, old=True, faults={"gpus": "2"})
    rows = bench("--generate", "", "--backend", "rocm", "--device", "all", "--device", "each")
    assert {setting: row["setting"].get("env") for (_, setting), row in rows.items()} == {  # type: ignore[attr-defined]
        "rocm:0+1": None,
        "rocm:0": {"HIP_VISIBLE_DEVICES": "0"},
        "rocm:1": {"HIP_VISIBLE_DEVICES": "1"},
    }


@pytest.mark.slow
def test_an_old_build_is_driven_with_the_options_it_has(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, old=True)
    rows = bench("--depth", "0,512", "--load", "none", "--generate", "", code=1)
    assert {key: row["verdict"] for key, row in rows.items()} == {
        ("pp512", "rocm,load=none"): "pass",
        ("pp512", "cpu,load=none"): "pass",
        ("pp512 @ d512", "rocm,load=none"): "unsupported",
        ("pp512 @ d512", "cpu,load=none"): "unsupported",
    }
    assert "-mmp" in rows["pp512", "rocm,load=none"]["prepared"]["command"]  # type: ignore[index]
    assert rows["pp512", "cpu,load=none"]["prepared"]["subject"]["gfx_target"] == "cpu"  # type: ignore[index]


@pytest.mark.slow
def test_each_failure_has_its_verdict_and_the_others_go_on(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"pp24": "abort", "pp32": "oom", "pp48": "said", "pp64": "nothing"})
    rows = bench("--generate", "", "--prompt", "24,32,48,64,80", "--backend", "rocm", code=1)
    found = {test: (row["verdict"], str(row["reason"])) for (test, _), row in rows.items()}
    expected = {
        "pp24": ("crash", "ROCm error"),
        "pp32": ("oom", "buffer"),
        "pp48": ("crash", "exit status 0"),
        "pp64": ("infra", "n_prompt is missing"),
        "pp80": ("pass", ""),
    }
    assert {test: verdict for test, (verdict, _) in found.items()} == {test: v for test, (v, _) in expected.items()}
    assert all(said in found[test][1] for test, (_, said) in expected.items())
    assert [test for (test, _), row in rows.items() if "figure" in row] == ["pp80"]


def test_a_gpu_run_that_computes_on_the_cpu_gets_no_figure(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"ROCm0": "cpu"})
    rows = bench("--generate", "", "--prompt", "64", code=1)
    assert rows["pp64", "rocm"]["verdict"] == "silent-cpu-fallback"
    assert "0 of 33 layers" in str(rows["pp64", "rocm"]["reason"])
    assert "figure" not in rows["pp64", "rocm"]
    assert rows["pp64", "cpu"]["verdict"] == "pass"


@pytest.mark.slow
def test_a_test_that_fails_or_hangs_leaves_the_others(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"pp512@d512": "abort", "tg128": "hang"})
    rows = bench("--backend", "rocm", "--depth", "0,512", "--limit", "3s", code=1)
    assert [row["verdict"] for row in rows.values()] == ["pass", "crash", "hang", "pass"]


@pytest.mark.slow
def test_a_run_goes_on_after_a_kill(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    fake.write_program(tmp_path, faults={"pp512@d512": "killed", "mark": str(mark)})
    first = bench("--backend", "rocm", "--depth", "0,512", code=1)
    assert [row["verdict"] for row in first.values()] == ["pass", "crash", "pass", "pass"]
    again = bench("--backend", "rocm", "--depth", "0,512", "--resume", "last", code=1)
    assert {row["group"] for row in again.values()} == {row["group"] for row in first.values()}
    assert [row["started_at"] for row in again.values()] == [row["started_at"] for row in first.values()]


@pytest.mark.slow
def test_a_run_that_was_killed_itself_goes_on_where_it_was(bench: Bench, tmp_path: Path) -> None:
    mark, store = tmp_path / "mark", tmp_path / "evidence.sqlite"
    fake.write_program(tmp_path, faults={"tg128": "waits", "mark": str(mark)})
    model = fake.write_model(tmp_path / "model-Q4_K_M.gguf")
    words: list[str | Path] = [
        "bench",
        "llama",
        "--model",
        model,
        "--build",
        tmp_path,
        "--quick",
        "--time",
        "10ms",
        "--backend",
        "rocm",
    ]
    command: list[str | Path] = [Path(sys.executable).with_name("rocmend"), *words, "--store", store]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        while not mark.exists() and run.poll() is None:
            select.select([], [], [], 0.05)
        run.kill()
    rows = bench("--backend", "rocm", "--resume", "last")
    assert {test: row["verdict"] for (test, _), row in rows.items()} == {"pp512": "pass", "tg128": "pass"}
    assert str(rows["pp512", "rocm"]["started_at"]) < str(rows["tg128", "rocm"]["started_at"])


@pytest.mark.slow
def test_a_run_that_is_to_end_prints_what_it_has(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    fake.write_program(tmp_path, faults={"tg128": "waits", "mark": str(mark)})
    command: list[str | Path] = [Path(sys.executable).with_name("rocmend"), "bench", "llama", "--build", tmp_path]
    command += ["--model", fake.write_model(tmp_path / "model.gguf"), "--quick", "--time", "10ms", "--backend", "rocm"]
    command += ["--store", tmp_path / "evidence.sqlite", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while not mark.exists() and run.poll() is None:
            select.select([], [], [], 0.05)
        run.terminate()
        out, said = run.communicate(timeout=60)
    data = json.loads(out)["data"]
    assert (run.returncode, [row["case"]["title"] for row in data["results"]], len(data["not_run"])) == (
        1,
        ["pp512"],
        1,
    )
    assert "1 of 2 are done and kept. To go on: rocmend bench llama" in said


@pytest.mark.slow
def test_wrong_text_gets_no_figure(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path)
    fake.write_completion(tmp_path, {"ROCm0": "GGGG GGGG " * 8, "none": "Mercury, Venus, Earth and Mars"})
    rows = bench("--generate", "", code=1)
    assert rows["pp512", "rocm"]["verdict"] == "wrong-output"
    assert "repeated" in str(rows["pp512", "rocm"]["reason"])
    assert rows["pp512", "cpu"]["verdict"] == "pass"


@pytest.mark.slow
def test_the_output_is_checked_with_the_batch_size_that_is_measured(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path)
    right = "Mercury, Venus, Earth and Mars"
    texts = {"ROCm0": right, "ROCm0-ub1024": "GGGG GGGG " * 8, "none": right}
    fake.write_completion(tmp_path, texts)
    words = ("--generate", "", "--backend", "rocm", "--ubatch", "512,1024")
    rows = bench(*words, code=1)
    assert [row["verdict"] for row in rows.values()] == ["pass", "wrong-output"]
    fake.write_completion(tmp_path, texts, batch=False)
    rows = bench(*words, "--depth", "0")
    said = [row["prepared"]["detail"]["output"]["said"] for row in rows.values()]  # type: ignore[index]
    assert said == [
        f"llama-completion: the same text as on the CPU (without -ub {size}, which it has no option for)"
        for size in (512, 1024)
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--backend", "rocn"), "rocm"),
        (("--depth", "a"), "0,2048"),
        (("--device", "ROCm2"), "It has: ROCm0"),
        (("--split-mode", "row"), "no build finds several GPUs"),
        (("--tensor-split", "3"), "3/1"),
        (("--prompt", "", "--generate", ""), "nothing is left"),
        (("--calibrate", "--select", "*tg128"), "--select leaves none"),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    installed: Callable[..., Done], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    fake.write_program(tmp_path)
    model = fake.write_model(tmp_path / "m.gguf")
    done = installed("bench", "llama", "--model", model, "--build", tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "ROCm0/ROCm0"), "'ROCm0/ROCm0' names a GPU twice"),
        (("--device", "ROCm0", "--backend", "cpu"), "'ROCm0' is no device of the CPU"),
        (("--tensor-split", "1/1/1"), "1/1/1 is 3 shares, but rocm:0+1 has 2 GPUs"),
        (("--split-mode", "row", "--device", "ROCm0"), "--device names no two GPUs together"),
    ],
)
def test_gpus_that_cannot_be_are_a_usage_error(
    installed: Callable[..., Done], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    fake.write_program(tmp_path, faults={"gpus": "2"})
    model = fake.write_model(tmp_path / "m.gguf")
    done = installed("bench", "llama", "--model", model, "--build", tmp_path, *words)
    assert (done.code, done.out) == (2, "")
    assert said in " ".join(done.err.split())


def test_gpus_of_two_back_ends_are_no_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = [Device("ROCm0", "Radeon"), Device("Vulkan0", "Radeon (RADV)")]
    monkeypatch.setattr(Build, "devices", lambda _build, _env: found)
    build = Build("", tmp_path, Help({"-dev": ""}))
    assert [one.name for one in find_backends(build, (), devices=("Vulkan0",))[0]] == ["vulkan", "cpu"]
    with pytest.raises(UsageError, match="different back ends"):
        find_backends(build, (), devices=("ROCm0/Vulkan0",))
    with pytest.raises(UsageError, match="It has: Vulkan0"):
        find_backends(build, (), ("vulkan",), ("ROCm0",))


def test_what_is_no_model_or_no_build_is_said(installed: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_text("no model")
    program = tmp_path / "llama-bench"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('libfoo.so: cannot open shared object file')\n")
    program.chmod(0o755)
    for model, said in ((tmp_path / "m.gguf", "not a GGUF file"), (tmp_path / "none.gguf", "there is no file")):
        done = installed("bench", "llama", "--model", model, "--build", program)
        assert done.code == 2
        assert said in done.err
    model = fake.write_model(tmp_path / "right.gguf")
    done = installed("bench", "llama", "--model", model, "--build", program)
    assert done.code == 2
    assert "libfoo.so" in done.err


def test_options_are_read_as_they_are_spelt() -> None:
    new, old = (parse_help(text.splitlines()) for text in (fake._NEW_HELP, fake._OLD_HELP))
    assert new.choices("-o") == ("csv", "json", "jsonl", "md", "sql")
    assert (new.has("-mmp"), new.has("-lm", "--load-mode"), new.has("-dev")) == ("", "-lm", "-dev")
    assert (old.has("-mmp"), old.has("-fa"), old.choices("-o")) == ("-mmp", "", ("csv", "json", "md", "sql"))


def test_the_device_is_read_from_the_buffers() -> None:
    lines = [
        "ggml_vulkan: Found 1 Vulkan devices:",
        "ggml_vulkan: 0 = AMD Radeon Test (RADV GFX1151) (radv) | uma: 1 | fp16: 1 | warp size: 64",
        "load_tensors: offloaded 3/3 layers to GPU",
        "load_tensors:   CPU_Mapped model buffer size =     0.04 MiB",
        "load_tensors:      Vulkan0 model buffer size =     0.18 MiB",
        "load_tensors:      Vulkan1 model buffer size =     1.2.3 MiB",
        "sched_reserve:    Vulkan0 compute buffer size =     0.16 MiB",
        "sched_reserve: Vulkan_Host compute buffer size =     0.06 MiB",
    ]
    found = read_computed(lines)
    assert (found.device, found.gfx_target, found.offloaded, found.others) == ("Vulkan0", "gfx1151", 3, ("Vulkan0",))


@pytest.mark.parametrize(
    ("backend", "computed", "said"),
    [
        (Backend("rocm", "ROCm0"), Computed("ROCm0", offloaded=33, layers=33, buffers={"ROCm0": 9.0}), ""),
        (Backend("rocm", "ROCm0"), Computed("CPU", offloaded=0, layers=33, buffers={"CPU": 9.0}), "0 of 33 layers"),
        (Backend("rocm", "ROCm0"), Computed("CPU", buffers={"CPU": 9.0}), "in the CPU's memory"),
        (Backend("rocm", "ROCm0"), Computed("CPU", offloaded=33, layers=33, buffers={"CPU": 9.0}), ""),
        (
            Backend("vulkan-radv", "Vulkan0"),
            Computed("Vulkan0", "llvmpipe (LLVM)", buffers={"Vulkan0": 9.0}),
            "llvm",
        ),
        (
            Backend("vulkan-lavapipe", "Vulkan0"),
            Computed("Vulkan0", "llvmpipe (LLVM)", buffers={"Vulkan0": 9.0}),
            "",
        ),
        (Backend("cpu", "none"), Computed("CPU", offloaded=0, layers=33, buffers={"CPU": 9.0}), ""),
        (Backend("cpu", "none"), Computed("CPU", offloaded=0, buffers={"CPU": 9.0}, others=("Vulkan0",)), "Vulkan0"),
    ],
)
def test_where_a_run_computed_is_held_against_what_was_asked_for(
    backend: Backend, computed: Computed, said: str
) -> None:
    fault = judge(backend, computed, None).fault
    assert (said in fault) if said else not fault


@pytest.mark.parametrize(
    ("shares", "holding", "said"),
    [
        ("1/0", ("ROCm0",), ""),
        ("0/1", ("ROCm1",), ""),
        ("0/1", ("ROCm0",), "ROCm1 was asked for"),
        ("1/1", ("ROCm0", "ROCm1"), ""),
        ("1/0.0", ("ROCm0", "ROCm1"), "ROCm0 was asked for"),
        ("0/0", ("ROCm0", "ROCm1"), ""),
        ("", ("ROCm0",), "ROCm0 and ROCm1 were asked for"),
    ],
)
def test_a_gpu_without_a_share_holds_no_weights(shares: str, holding: tuple[str, ...], said: str) -> None:
    computed = Computed(holding[0], buffers=dict.fromkeys(holding, 9.0), used=holding)
    fault = judge(Backend("rocm:0+1", "ROCm0/ROCm1"), computed, None, Chosen(tensor_split=shares)).fault
    assert (said in fault) if said else not fault


def test_texts_and_perplexities_are_compared() -> None:
    right = "Mercury, Venus, Earth, Mars"
    assert compare_texts(right, right) == (Verdict.PASS, "the same text as on the CPU")
    assert compare_texts("Mercury, Venus, then others", right)[0] is Verdict.PASS
    assert compare_texts("0 0 banana", right)[0] is Verdict.WRONG_OUTPUT
    assert garbage("\ufffd" * 20)
    assert garbage("  ")
    assert not garbage("one two three four")
    assert compare_perplexities(6.9, 6.81)[0] is Verdict.PASS
    assert compare_perplexities(1334.0, 6.81)[0] is Verdict.WRONG_OUTPUT
    assert compare_perplexities(float("nan"), 6.81)[0] is Verdict.WRONG_OUTPUT


def test_a_models_header_is_read(tmp_path: Path) -> None:
    model = read_model(fake.write_model(tmp_path / "a.gguf"))
    assert (model.architecture, model.quantization, model.parameters, model.context) == ("llama", "Q4_K_M", 2048, 4096)


@given(data=st.data())
def test_a_damaged_header_is_an_error_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "a.gguf"
    whole = bytearray(fake.write_model(path).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(4, len(whole) - 65))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with contextlib.suppress(DataError):
        assert read_model(path).parameters >= 0


def test_published_results_are_imported_side_by_side(installed: Callable[..., Done], tmp_path: Path) -> None:
    folder = tmp_path / "demo-bench"
    assert installed("demo", "bench", folder).code == 0
    store = ("--store", tmp_path / "evidence.sqlite")
    shown = installed("bench", "import", folder / "strix-halo-vulkan-amdvlk.md", folder / "dgx-spark.md", *store)
    assert shown.code == 0, shown.err
    for advantage in ("52.87 (+5.6 %)", "48.46 (+12.3 %)", "38.76 (+22.9 %)"):
        assert advantage in shown.out
    listed = installed("store", "ls", "--format", "jsonl", *store)
    records = [json.loads(line) for line in listed.out.splitlines()]
    assert {record["evidence"]["kind"] for record in records} == {"imported"}
    (group,) = {record["evidence"]["group"] for record in records}
    compared = installed(
        "compare", f"{group}@CUDA DGX Spark", f"{group}@Vulkan Strix Halo", "--across-devices", "--json", *store
    )
    assert compared.code in {0, 1}, compared.err
    assert installed("compare", "last~1", "last", *store).code == 2


def test_what_cannot_be_imported_is_listed_with_its_line(installed: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"n_prompt": 1, "n_gen": 0, "avg_ts": NaN}\n{"n_prompt": 1, "n_gen": 0, "avg_ts": 2}\n'
    )
    done = installed("bench", "import", tmp_path / "a.jsonl", "--no-store", "--json")
    data = json.loads(done.out)["data"]
    assert (done.code, len(data["results"])) == (1, 1)
    assert data["problems"][0]["text"].startswith("line 1: ")
    assert installed("bench", "import", tmp_path / "none", "--no-store").code == 2


@pytest.mark.slow  # eight starts of 0.8 s on half a processor
def test_a_processor_that_others_have_is_noticed(bench: Bench, tmp_path: Path) -> None:
    fake.write_program(tmp_path, faults={"pp512": "spins"})
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    os.sched_setaffinity(0, {one})
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        rows = bench("--backend", "cpu", "--generate", "0", "--no-check")
    finally:
        other.kill()
        other.wait()
        os.sched_setaffinity(0, allowed)
    (row,) = rows.values()
    shares = row["waited"]
    assert isinstance(shares, list)
    assert all(0.2 < share < 0.9 for share in shares), shares
