"""The program that runs MLX's own tests: what it counts, and the reasons that it prints."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.mlx import suite

from rocmend.mlx.programs.left_out import GPU_TESTS, TESTS, known_tests

RECORDED = Path(suite.__file__).parent / "results" / "h200-suite.json"


def test_reasons_are_printed_by_device() -> None:
    name = "test_double.py::TestDouble::test_gemm"
    file, _, test = name.partition("::")
    result = suite.FileResult(file, {test: "failed", "TestDouble::test_other": "passed"}, {test: "not raised"}, 1.0)
    assert suite.unexplained([result], "cpu") == [name]
    assert suite.unexplained([result], "gpu") == []
    told = suite.table([result], "gpu")
    assert f"failed: {name}: not raised\n    known: {GPU_TESTS[name]}" in told
    assert "    no reason is known" in suite.table([result], "cpu")


def test_reasons_stand_once() -> None:
    assert not set(TESTS) & set(GPU_TESTS)
    assert known_tests("gpu") == TESTS | GPU_TESTS
    assert known_tests("cpu") == TESTS


def test_each_reason_of_a_gpu_is_of_a_test_that_did_not_pass_on_one() -> None:
    files = json.loads(RECORDED.read_text(encoding="utf-8"))["files"]
    outcomes = {f"{file['name']}::{test}": found for file in files for test, found in file["outcomes"].items()}
    assert {outcomes[name] for name in GPU_TESTS} <= {"failed", "timed out", "crashed"}
