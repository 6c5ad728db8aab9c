"""The program that measures memory: its model, what it watches, and whole stages through mlx_lm."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from benchmarks.mlx import memory

from rocmend.core.documents import decode_json

pytestmark = pytest.mark.cpu


def test_the_model_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    for asked in (0.2, 12.0):
        sizes = [memory.elements(shape) for shape in memory.shapes_of(memory.config_of(asked)).values()]
        assert abs(2 * sum(sizes) / (asked * 1e9) - 1) < 0.2
    config = memory.config_of(0.01) | {"vocab_size": 64, "hidden_size": 128, "intermediate_size": 128}
    memory.write_model(tmp_path / "model", config, 1 << 18)
    files = sorted((tmp_path / "model").glob("*.safetensors"))
    assert len(files) > 1
    found = set()
    for file in files:
        data = file.read_bytes()
        length = int.from_bytes(data[:8], "little")
        entries = decode_json(data[8 : 8 + length], dict[str, object], subject=file.name)
        assert len(data) == 8 + length + 2 * sum(memory.elements(memory.shapes_of(config)[name]) for name in entries)
        found |= set(entries)
    assert found == set(memory.shapes_of(config))


def test_a_process_is_stopped_at_the_limit() -> None:
    code = "import json, sys, time\nprint(json.dumps({'base': {}}), flush=True)\nx = bytearray(1 << 28)\ntime.sleep(60)"
    found = memory.watched([sys.executable, "-c", code], 1e8)
    assert found["stopped"]
    assert not found["ok"]
    assert found["peak"] > 1e8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quantize", "convert"])
def test_a_model_is_quantized_in_less_memory_than_it_takes_itself(name: str) -> None:
    if not all(importlib.util.find_spec(package) for package in ("mlx_lm", "transformers")):
        pytest.skip("mlx_lm is not installed")
    program = [sys.executable, memory.__file__, "--weights-gb", "0.25", "--stages", name, "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["stage"] == name
    assert found["ok"], done.stderr
    # What stays is 0.28 of the weights; working space of some 90 MB does not grow with them. It was 3.5 times.
    assert found["peak"] < 0.8 * found["weights"]
