"""``port verify`` and ``port golden``: what proves a port."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .port_project import KERNEL, TRAINING, Rocmend, bytes_of, data_of


def test_written_proven_and_taken_back(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    done = rocmend("port", project, "--apply", "--target", "gfx1151", "--json")
    found = data_of(done)
    assert found["written"]
    assert set(found["changed"]) == {"fast/train.py", "kernel.cu"}
    assert '"max-autotune-no-cudagraphs" if is_rocm else "max-autotune"' in (project / "fast" / "train.py").read_text()
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert [(level["name"], level["status"]) for level in proof["levels"]] == [
        ("identity", "passed"),
        ("static", "passed"),
    ]
    again = data_of(rocmend("port", project, "--apply", "--json"))
    assert again["changed"] == []
    assert rocmend("port", "undo", project).code == 0
    assert bytes_of(project) == before


def test_a_changed_nvidia_path_fails_the_proof(rocmend: Rocmend, project: Path) -> None:
    rocmend("port", project, "--apply")
    path = project / "kernel.cu"
    path.write_text(path.read_text().replace("out[threadIdx.x / 32] = kept", "out[threadIdx.x / 64] = kept"))
    done = rocmend("port", "verify", project, "--level", "identity", "--json")
    assert done.code == 1
    assert data_of(done)["levels"][0]["status"] == "failed"
    told = rocmend("port", "verify", project, "--level", "identity").out
    assert "Level 1, identity: failed\n" in told, "not what it would prove, above what was broken"


@pytest.mark.slow
def test_a_level_that_was_asked_for_and_did_not_run_is_no_success(rocmend: Rocmend, project: Path) -> None:
    rocmend("port", project, "--apply")
    done = rocmend("port", "verify", project, "--level", "emulated", "--json")
    assert (done.code, data_of(done)["levels"][-1]["status"]) == (1, "not run")


NVCC = """#!/bin/sh
case $1 in
  --version) echo "release 13.0, V13.0.88"; exit;;
  --list-gpu-code) echo sm_90; exit;;
esac
for last; do :; done
echo "$last:1:10: fatal error: torch/extension.h: No such file or directory" >&2
exit 1
"""


@pytest.mark.slow
def test_what_nvcc_never_compiled_and_nobody_can_run_is_told_so(
    rocmend: Rocmend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, tools = tmp_path / "project", tmp_path / "bin"
    for folder in (project, tools):
        folder.mkdir()
    (tools / "nvcc").write_text(NVCC)
    (tools / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    (project / "kernel.cu").write_text("#include <torch/extension.h>\n" + KERNEL)
    (project / "train.py").write_text(TRAINING)  # a script: nothing imports it, and there are no tests
    rocmend("port", project, "--apply")
    assert "nothing that --run would execute" in " ".join(rocmend("port", "verify", project, "--list").out.split())
    told = " ".join(rocmend("port", "verify", project, "-v").out.split())
    failed = (
        "could not be compiled, neither before nor after the port: torch/extension.h is missing (pip install torch)"
    )
    assert f"1 file {failed}" in told
    assert "identical to the original" not in told.partition("5 nvidia")[2].partition("6 python")[0]
    assert "rocmend-verify" not in told
    assert "To run the rest" not in told
    assert "none of the changed files can be imported on its own, and there are no tests" in told


def test_a_project_that_was_not_ported_is_told_to_be_ported_first(rocmend: Rocmend, project: Path) -> None:
    root = project.rename(project.with_name("my project"))
    done = rocmend("port", "verify", root)
    assert (done.code, done.out) == (2, "")
    assert "was not ported yet: " in " ".join(done.err.split())
    assert f"  rocmend port '{root}' --apply" in done.err.splitlines()
    (error,) = json.loads(rocmend("port", "verify", root, "--json").out)["errors"]
    assert error["code"] == "usage"


def test_a_project_that_needs_no_port_is_checked_as_it_is(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = rocmend("port", "verify", tmp_path)
    assert done.code == 0
    assert "No port was applied here, and there is nothing to rewrite." in " ".join(done.out.split())
    assert rocmend("port", "verify", tmp_path, "--level", "identity").code == 1, "it was asked for and did not run"


GUARDS = """#ifdef USE_ROCM
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif
#if CUDA_VERSION >= 11000 && !defined(USE_ROCM)
#include <cuda_bf16.h>
#endif
#if defined(__HIP_PLATFORM_AMD__)
#define HAS_HALF2 1
#elif CUDART_VERSION >= 9000
#define HAS_HALF2 1
#endif
#if !defined(USE_ROCM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error too old
#endif

__global__ void scale(float *out, const float *in) {
#if defined(USE_ROCM) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
  out[threadIdx.x] = in[threadIdx.x] * 2;
#else
  out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x];
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;");
#elif defined(USE_ROCM)
  __builtin_amdgcn_s_sleep(1);
#endif
}
"""


GUARDED = """import torch

ROCM = torch.version.hip is not None


def faster(model):
    if ROCM:
        return torch.compile(model)
    return torch.compile(model, mode="max-autotune")


def wide():
    return torch.version.hip is None and torch.cuda.get_device_capability() >= (9, 0)
"""


@pytest.mark.slow
def test_guards_that_treat_rocm_are_left_alone(project: Path) -> None:
    """What was ported by hand is ported: nothing is found, nothing is written, and the proof passes."""
    (project / "kernel.cu").write_text(GUARDS)
    (project / "fast" / "train.py").write_text(GUARDED)
    before = bytes_of(project)
    program = [sys.executable, "-m", "rocmend", "port"]

    def run(*arguments: str | Path) -> Any:
        done = subprocess.run([*program, *arguments, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["data"]

    found = run(project)
    assert [file for file in found["analysis"]["files"] if file.get("issues")] == []
    assert (found["changed"], found["added"]) == ([], [])
    assert run(project, "--apply")["changed"] == []
    assert bytes_of(project) == before
    (static,) = [level for level in run("verify", project)["levels"] if level["name"] == "static"]
    assert static["status"] == "passed"
    # beside something that does need a port, they stay as they are
    (project / "more.cu").write_text(KERNEL)
    assert run(project, "--apply", "--allow-dirty")["changed"] == ["more.cu"]
    levels = run("verify", project, "--level", "static")["levels"]
    assert [level["status"] for level in levels] == ["passed", "passed"]


def test_a_folder_of_hip_beside_the_sources_is_what_is_proven(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    assert data_of(rocmend("port", project, "--apply", "--style", "tree", "--json"))["written"]
    assert (project / "kernel.cu").read_text() == KERNEL
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert [level["status"] for level in proof["levels"]] == ["passed", "passed"]
    hip = project / "rocm" / "kernel.hip"
    assert hip.is_file()
    again = rocmend("port", project, "--apply")  # in the style of the port that is there
    assert again.code == 0
    assert "Nothing to rewrite" in again.out
    assert (project / "kernel.cu").read_text() == KERNEL
    hip.write_text(hip.read_text() + "void moon() { cudaFlyToTheMoon(); }\n")
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert proof["levels"][1]["status"] == "incomplete"
    assert rocmend("port", "undo", project).code == 2
    hip.write_text(hip.read_text().replace("void moon() { cudaFlyToTheMoon(); }\n", ""))
    assert rocmend("port", "undo", project).code == 0
    assert bytes_of(project) == before


@pytest.mark.slow
def test_golden_vectors_are_kept_and_compared(rocmend: Rocmend, project: Path) -> None:
    pytest.importorskip("torch")
    (project / "fast" / "ops.py").write_text("def doubled(x):\n    return x * 2\n")
    assert rocmend("port", "golden", project, "--name", "cpu", "--device", "cpu").code == 2
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:doubled"]\n')
    done = rocmend("port", "golden", project, "--name", "cpu", "--device", "cpu", "--run", "--json")
    assert done.code == 0, done.err
    assert Path(data_of(done)["path"]).is_file()
    (project / "fast" / "ops.py").write_text("def two(x, y):\n    return x\n\ndef doubled(x):\n    return x * 2\n")
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:two", "fast.ops:doubled"]\n')
    half = rocmend("port", "golden", project, "--name", "half", "--device", "cpu", "--run")
    assert half.code == 1
    assert "Could not be called" in half.out
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:two"]\n')
    none = rocmend("port", "golden", project, "--name", "none", "--device", "cpu", "--run")
    assert none.code == 2
    assert "missing 1 required positional argument" in none.err
    assert sorted(path.name for path in (project / ".rocmend" / "golden").iterdir()) == ["cpu.json", "half.json"]
    assert rocmend("port", "golden", project, "--name", "../out", "--device", "cpu").code == 2
