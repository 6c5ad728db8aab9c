"""Kernels that are switched off by name."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from rocmend.kernels.ops.quantized_matmul import Problem, few
from rocmend.kernels.ops.quantized_matmul.host import kernel_of
from rocmend.kernels.target import by_name
from rocmend.kernels.without import nvidia_only, switched_off

SM90 = by_name("sm90")


def test_one_is_switched_off_for_a_time_and_choices_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "_SUITED", True)
    problem = Problem("float16", "affine", 4, 64, True, 1, 1, 256, 512)
    assert kernel_of(problem, SM90) == "lanes"
    with switched_off("quantized_matmul.lanes"):
        assert kernel_of(problem, SM90) == "gemv"
        assert nvidia_only("gather_qmm.digits", SM90)
    assert kernel_of(problem, SM90) == "lanes"


def test_all_that_only_nvidia_runs_is_one_name() -> None:
    with switched_off("nvidia"):
        assert not nvidia_only("gather_qmm.digits", SM90)
    assert nvidia_only("gather_qmm.digits", SM90)
    assert not nvidia_only("gather_qmm.digits", by_name("gfx1151"))
