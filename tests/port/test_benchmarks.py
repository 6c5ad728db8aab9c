"""The benchmark that ports a collection of programs, and the page that is made of its log."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.port_projects import compiles, copied, wanted
from benchmarks.port_table import page

ROOT = Path(__file__).parents[2]
CONDITIONS = {
    "projects": 4, "seed": 1, "targets": ["gfx942"], "source": "f27000a5180000", "toolchain": "clang 22", "headers": "",
    "nvcc": "13.5, V13.5.37", "arch": "compute_90", "rocmend": "abc", "limit_s": 9.0,
}  # fmt: skip


def record(name: str, outcome: str = "", before: str | None = None) -> dict[str, object]:
    told = {"gfx942": [[outcome, "a.cu:1:1: error: use of undeclared identifier 'cuX'", []]]} if outcome else {}
    passed = ["passed", "1 of 1"] if not outcome else ["failed", "0 of 1"]
    made: dict[str, object] = {
        "project": name, "rocmend": "abc", "targets": ["gfx942"], "units": {"a.cu": told}, "issues": [],
        "levels": {"identity": ["passed", ""], "static": ["passed", ""], "compile": passed},
    }  # fmt: skip
    return made if before is None else made | {"before": {"a.cu": before}}


def test_the_page_counts_the_last_record_of_each_program(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = [
        {"conditions": CONDITIONS}, record("a-cuda"), record("b-cuda", "broken", ""), record("d-cuda", "broken", ""),
        record("c-cuda", "broken", "a.cu(1): error: texture is not a template"), record("b-cuda"),
    ]  # fmt: skip
    log.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"project": "cut o')
    made = page(log, "Programs", "https://example.org/x/Programs", "")
    assert "| compile for gfx942 | 2; 2 do not |" in made
    assert "nvcc does not compile here | 2 of 3 (66.7 %) |" in made
    assert "| c | all | no: texture is not a template | `cuX` | nothing |" in made
    assert "| a name that HIP or its libraries lack | yes | 2 | 1 | c, d |" in made


def test_what_has_a_record_is_measured_again_only_on_request() -> None:
    good, bad = record("a"), record("b", "broken")
    assert (compiles(good), compiles(bad)) == (True, False)
    assert [wanted(one, "", ["gfx942"]) for one in (None, good, bad)] == [True, False, False]
    assert [wanted(one, "failing", ["gfx942"]) for one in (good, bad)] == [False, True]
    assert wanted(good, "", ["gfx1201"])


def test_headers_of_folders_that_a_makefile_names_are_copied_beside(tmp_path: Path) -> None:
    for path, text in {
        "a/Makefile": "CFLAGS = -I../b -I../gone\n", "a/main.cu": "", "b/b.h": "", "b/b.cu": "", "c/c.h": "",
    }.items():  # fmt: skip
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_text(text)
    folder, prefix = copied(tmp_path / "in/a", tmp_path / "out")
    assert prefix == "a/"
    assert sorted(str(one.relative_to(folder)) for one in folder.rglob("*.*")) == ["a/main.cu", "b/b.h"]


@pytest.mark.slow
def test_a_run_that_is_ended_leaves_no_record_of_what_it_was_at(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    pytest.importorskip("clang.native")
    source = tmp_path / "one-cuda"
    source.mkdir()
    (source / "a.cu").write_text("__global__ void k() {}\n")
    log = tmp_path / "log.jsonl"
    argv = [
        sys.executable,
        "benchmarks/port_projects.py",
        str(source),
        "--log",
        str(log),
        "--work",
        str(tmp_path / "w"),
    ]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL) as run:
        while not (log.exists() and (tmp_path / "w").exists()):
            assert run.poll() is None
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 1
    assert [line for line in log.read_text().splitlines() if "project" in json.loads(line)] == []
