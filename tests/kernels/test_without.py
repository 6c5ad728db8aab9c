"""Kernels that are switched off by name."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

from rocmend import kernels
from rocmend.kernels import without
from rocmend.kernels.ops.matmul.quantized_matmul import Problem, few
from rocmend.kernels.ops.matmul.quantized_matmul.host import kernel_of
from rocmend.kernels.target import by_name
from rocmend.kernels.without import nvidia_only, switched_off

SM90 = by_name("sm90")


def test_one_is_switched_off_for_a_time_and_choices_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "_SUITED", True)
    problem = Problem("float16", "affine", 4, 64, True, 1, 1, 256, 512)
    assert kernel_of(problem, SM90) == "lanes"
    with switched_off("quantized_matmul.lanes"):
        assert kernel_of(problem, SM90) == "gemv"
        assert nvidia_only("gather_qmm.moe_gemv", SM90)
    assert kernel_of(problem, SM90) == "lanes"


def test_all_that_only_nvidia_runs_is_one_name() -> None:
    with switched_off("nvidia"):
        assert not nvidia_only("gather_qmm.moe_gemv", SM90)
    assert nvidia_only("gather_qmm.moe_gemv", SM90)
    assert not nvidia_only("gather_qmm.moe_gemv", by_name("gfx1151"))


def test_every_kernel_has_its_name_in_the_list_and_others_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in Path(kernels.__file__).parent.rglob("*.py"))
    assert all(sources.count(f'"{name}"') >= 2 for name in without.NVIDIA)
    with switched_off("gather_qmm.moe_gemw"):
        assert "no kernel is called 'gather_qmm.moe_gemw'" in caplog.text
