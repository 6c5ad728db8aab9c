"""``rocmend bench nn``, as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

Run = Callable[..., Done]


@pytest.mark.slow
@pytest.mark.cpu
def test_a_tiny_network_is_measured_behind_its_reference(installed: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    store = ("--store", str(tmp_path / "evidence.sqlite"))
    words = ("--preset", "tiny", "--model", "llm-prompt", "--device", "cpu", "--quick", "--time", "20ms", "--json")
    done = installed("bench", "nn", *words, *store)
    assert done.code == 0, done.err
    results = json.loads(done.out)["data"]["results"]
    assert [one["case"]["id"] for one in results] == [
        "nn/llm-prompt-tiny/inference/float32/b1",
        "nn/llm-prompt-tiny/training/float32/b1",
    ]
    for one in results:
        assert one["unit"] == "tok/s"
        assert one["figure"] > 0
        detail = one["prepared"]["detail"]
        assert 0 < detail["error"] < detail["allowed"]
        assert detail["definition"] == "rocmend"
        assert one["prepared"]["first_s"] > 0


def test_cases_and_settings_are_listed(rocmend: Run) -> None:
    done = rocmend("bench", "nn", "--preset", "seed", "--list", "--json")
    data = json.loads(done.out)["data"]
    assert len(data["cases"]) == 5
    assert data["cases"][4]["id"] == "nn/bert-base-512/inference/float16/b32"
    assert [one["id"] for one in data["settings"]] == ["eager"]  # what a run measures, and so what the estimate is of
    assert [one["id"] for one in data["more_settings"]] == ["compile", "channels-last", "compile+channels-last"]
    assert data["estimate"]["timing_s"] == [5 * blocks * 0.2 for blocks in (8, 20)]
    listed = rocmend("bench", "nn", "--model", "llm-prompt", "--list", "--json")
    assert [one["id"] for one in json.loads(listed.out)["data"]["cases"]] == ["nn/llm-prompt/inference/float16/b1"]


def test_a_task_that_a_network_does_not_have_is_refused(rocmend: Run) -> None:
    done = rocmend("bench", "nn", "--model", "llm-decode", "--task", "training")
    assert (done.code, done.out) == (2, "")
    assert "no training step" in done.err


@pytest.mark.slow
def test_a_quick_look_at_a_cpu_is_one_sample_in_fp32(rocmend: Run) -> None:
    listed = rocmend("bench", "nn", "--device", "cpu", "--list", "--json")
    assert [one["id"] for one in json.loads(listed.out)["data"]["cases"]] == [
        "nn/resnet-50/inference/float32/b1",
        "nn/bert-base-128/inference/float32/b1",
    ]
    listed = rocmend("bench", "nn", "--device", "cuda", "--batch", "2", "--list", "--json")
    assert json.loads(listed.out)["data"]["cases"][0]["id"] == "nn/resnet-50/inference/float16/b2"
