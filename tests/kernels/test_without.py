"""Kernels that are switched off by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("triton")

from rocmend.kernels import backends, select, without
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.target import by_name
from rocmend.kernels.without import switched_off

PROBLEM = Problem("float16", "affine", 2, 64, True, 1, 1, 256, 512)
"""A product of which NVIDIA and AMD take kernels of their own."""


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the release of Triton with which kernels for NVIDIA's GPUs were measured."""
    monkeypatch.setattr(backends, "MEASURED", True)


def _kernel() -> str:
    return select.select(OP, PROBLEM, by_name("sm90"), "triton").implementation


def test_one_is_switched_off_for_a_time_and_choices_follow() -> None:
    assert _kernel() == "lanes"
    with switched_off("quantized_matmul.lanes"):
        assert _kernel() == "gemv"
        with switched_off("quantized_matmul.gemv"):
            assert _kernel() not in {"lanes", "gemv"}
    assert _kernel() == "lanes"


def test_all_that_only_nvidia_runs_is_one_name() -> None:
    with switched_off("nvidia"):
        assert _kernel() == "gemv"
    names = without.kernels("nvidia")
    assert {"quantized_matmul.lanes", "quantized_matmul.gemm_w4a16_wgmma"} <= set(names)
    assert "quantized_matmul.gemv" not in names


def test_names_of_no_kernel_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    with switched_off("gather_qmm.moe_gemw"):
        assert "no kernel is called 'gather_qmm.moe_gemw'" in caplog.text


def test_explain_says_that_one_is_switched_off() -> None:
    command = [
        sys.executable,
        "-m",
        "rocmend.cli.main",
        "kernels",
        "explain",
        OP.name,
        "--target",
        "gfx1151",
    ]
    fields = [f"{name}={value}" for name, value in PROBLEM._asdict().items()]
    env = {**os.environ, without.VARIABLE: "quantized_matmul.gemv"}
    done = subprocess.run([*command, *fields], capture_output=True, text=True, check=True, env=env)
    assert re.search(r"^groups \(triton\)", done.stdout, re.MULTILINE), done.stdout
    assert "switched off by ROCMEND_KERNELS_WITHOUT" in " ".join(done.stdout.split())
