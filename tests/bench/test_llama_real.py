"""A real llama-bench on two back ends: which device computed, and that both compute the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.runner.conftest import load_benchmark

from rocmend.bench.llama.backends import CPU, find_backends
from rocmend.bench.llama.build import find_builds
from rocmend.bench.llama.gguf import read_model
from rocmend.bench.llama.options import Chosen
from rocmend.bench.measure import Effort
from rocmend.bench.run import run_suite
from rocmend.bench.suites.llama import Llama, Tests, Way

PROGRAM = os.environ.get("LLAMA_BENCH", "")
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")
ICDS = [{"driver": "lavapipe", "file": str(LAVAPIPE)}]


@pytest.mark.large
@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM, reason="LLAMA_BENCH names no llama-bench; benchmarks/llama/build_bench.py makes one")
def test_a_real_build_is_measured_on_the_device_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    load_benchmark("llama.tiny_gguf").write_tiny_gguf(path)
    (build,) = find_builds([("", PROGRAM)])
    wanted = [CPU, *(["vulkan-lavapipe"] if LAVAPIPE.exists() else [])]
    backends, _ = find_backends(build, ICDS, wanted)
    model = read_model(path)
    assert (model.architecture, model.quantization, model.parameters) == ("llama", "F16", 115_008)
    ways = [Way(build, backend, Chosen(threads=1)) for backend in backends]
    suite = Llama(model, path, Tests((32,), (), (0,)), ways)
    run = run_suite(suite, effort=Effort(block_s=0.1, least_blocks=1, most_blocks=1, least_runs=1))
    assert run.clean, [result.reason for result in run.results]
    devices = [(result.setting.options["backend"], result.subject.device) for result in run.results]
    assert devices == [(name, {"cpu": "CPU"}.get(name, "Vulkan0")) for name in wanted]
    for result in run.results:
        assert result.prepared.detail["model"]["parameters"] == model.parameters
        output = result.prepared.detail["output"]
        assert "perplexity is" in output["said"] or "is the reference" in output["said"]
        assert abs(output["perplexity"] / output["reference_perplexity"] - 1) < 0.05
