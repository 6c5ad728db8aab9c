"""``rocmend bench kernels``, as a user meets it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

Run = Callable[..., Done]


@pytest.mark.cpu
@pytest.mark.slow
def test_without_a_gpu_torch_has_a_figure_and_ours_is_unsupported(installed: Run, tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    words = ("--tiny", "--dtype", "fp32", "--device", "cpu", "--select", "swiglu/*/8x256", "--quick", "--time", "20ms")
    done = installed("bench", "kernels", *words, "--store", str(tmp_path / "evidence.sqlite"), "--json")
    assert done.code == 1, done.err
    torchs, ours = json.loads(done.out)["data"]["results"]
    assert torchs["case"]["id"] == "kernels/swiglu/float32/8x256"
    assert torchs["figure"] > 0
    assert ours["verdict"] == "unsupported"
    assert ours["reason"] == "there is no GPU here, and without one no kernel of rocmend's computes it"


def test_cases_and_settings_are_listed(rocmend: Run) -> None:
    data = json.loads(rocmend("bench", "kernels", "--list", "--json").out)["data"]
    assert [one["id"] for one in data["settings"]] == ["torch", "rocmend"]
    assert [one["id"] for one in data["more_settings"]] == ["torch-compile"]
    assert len(data["cases"]) == 12
