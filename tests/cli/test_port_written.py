"""``port``: what is a finding, how findings are grouped, and what is written into other people's sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .port_project import Rocmend, data_of

AVAILABLE = """import os
from subprocess import DEVNULL, call

{probe}


def load():
    if cuda_toolkit_available():
        return "built"
    return "disabled"
"""

PROBES = {
    "nvcc": '''def cuda_toolkit_available():
    """Look for nvcc."""
    try:
        call(["nvcc"], stdout=DEVNULL, stderr=DEVNULL)
        return True
    except FileNotFoundError:
        return False''',
    "folder": """def cuda_toolkit_available() -> bool:
    import torch.utils.cpp_extension as jit

    cuda_home = jit._find_cuda_home()
    if not cuda_home:
        return False
    return os.path.isfile(os.path.join(cuda_home, "bin", "nvcc"))""",
    "nvidia-smi": """def cuda_toolkit_available():
    import shutil

    return shutil.which("nvidia-smi") is not None""",
    "libcudart": """import ctypes

try:
    ctypes.CDLL("libcudart.so.99")
    FOUND = True
except OSError:
    FOUND = False


def cuda_toolkit_available():
    return FOUND""",
}

TORCH = {
    "torch/__init__.py": "from . import cuda, version\n",
    "torch/version.py": "import os\n\nhip = os.environ.get('HIP')\ncuda = None\n",
    "torch/cuda.py": "from . import version\n\n\ndef is_available():\n    return version.hip is not None\n",
    "torch/utils/__init__.py": "",
    "torch/utils/cpp_extension.py": "import os\n\nROCM_HOME = os.environ.get('HIP')\n_find_cuda_home = lambda: None\n",
}


@pytest.mark.parametrize("probe", PROBES)
def test_a_part_of_cuda_that_decides_about_the_gpu_is_a_finding(rocmend: Rocmend, tmp_path: Path, probe: str) -> None:
    """Where it is answered "no", an extension is silently not built: with the suggestion taken, ROCm builds it."""
    project = tmp_path / "project"
    (project / "fast").mkdir(parents=True)
    (project / "fast" / "__init__.py").write_text("import torch\n")
    (project / "fast" / "_backend.py").write_text(AVAILABLE.format(probe=PROBES[probe]))
    for path, text in TORCH.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    done = rocmend("port", project, "--json")
    assert done.code == 1
    (issue,) = [one for one in data_of(done)["analysis"]["files"][0]["issues"] if one["rule"] == "PY44"]
    assert (issue["outcome"], issue["message"].split()[0]) == (
        "suggest",
        {"folder": "CUDA_HOME"}.get(probe, probe),
    )
    assert rocmend("port", project, "--apply", "--suggestions").code == 0
    told = {
        hip: subprocess.run(
            [sys.executable, "-c", "from fast._backend import load; print(load())"],
            cwd=project,
            env={"PYTHONPATH": os.pathsep.join([str(tmp_path), str(project)]), "PATH": "/nowhere", **hip_of(hip)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hip in ("", "/opt/rocm")
    }
    assert told == {"": "disabled", "/opt/rocm": "built"}


def hip_of(folder: str) -> dict[str, str]:
    return {"HIP": folder} if folder else {}


def test_jobs_for_cuda_are_one_line_and_stay_as_they_are(rocmend: Rocmend, project: Path) -> None:
    """A project has a script for each CUDA release that it builds for: 30 files, and nothing to do in them."""
    folder = project / ".github" / "workflows" / "cuda"
    folder.mkdir(parents=True)
    for release in ("118", "121", "128"):
        text = f'export CUDA_HOME=/usr/local/cuda-{release}\nexport TORCH_CUDA_ARCH_LIST="8.0;9.0"\n'
        (folder / f"cu{release}-env.sh").write_text(text)
    (project / ".github" / "workflows" / "a.yml").write_text("jobs:\n  a:\n    container: nvidia/cuda:12.1.0-base\n")
    done = rocmend("port", project)
    (line,) = [one for one in done.out.splitlines() if one.startswith("CI ")]
    assert line.split()[1] == "7\N{MULTIPLICATION SIGN}"
    assert ("EV07   " in done.out, ".github" in rocmend("port", project, "--diff").out) == (False, False)
    issues = [
        one for file in data_of(rocmend("port", project, "--json"))["analysis"]["files"] for one in file["issues"]
    ]
    assert {one["outcome"] for one in issues if one["path"].startswith(".github")} == {"note"}
    assert rocmend("port", project, "--apply").code == 0, "nothing in them is left to do"


def test_cells_of_which_the_same_is_said_are_one_finding(rocmend: Rocmend, tmp_path: Path) -> None:
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [
        {**cell, "source": ["import torch\n", "torch.backends.cuda.matmul.allow_tf32 = True\n"]} for _ in range(12)
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    (issue,) = data_of(rocmend("port", tmp_path, "--json"))["analysis"]["files"][0]["issues"]
    assert "(11 more in this file.)" in issue["message"]


def test_headers_are_included_after_what_guards_a_header(rocmend: Rocmend, project: Path) -> None:
    (project / "a.cuh").write_text("/* a */\n#pragma once\n\n#include <cstdio>\n__device__ int f() { return 1; }\n")
    rocmend("port", project, "--apply")
    assert (project / "a.cuh").read_text().startswith("/* a */\n#pragma once\n\n#ifdef USE_ROCM\n#include ")


MISJUDGED = {
    "lds": """CU20
void f() {
  size_t bytes = 96 * 1024;
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
""",
    "capability": """CU47
void f(cudaDeviceProp p) {
  if (p.major >= 8) a<<<1, 1>>>(); else b<<<1, 1>>>();
}
""",
    "said and chosen": """CU47
void f(cudaDeviceProp p) {
  if (p.major >= 8) { printf("fast"); a<<<1, 1>>>(); }
}
""",
    "itself": """CU31
__global__ void f(volatile int* done) {
  if (threadIdx.x == 0) {
    while (done[blockIdx.x] == 0);
  } else {
    done[blockIdx.x] = 1;
  }
}
""",
    "blocks": """CU31
// TODO: cudaLaunchCooperativeKernel
__global__ void __launch_bounds__(256, 4) f(volatile int* n) {
  if (threadIdx.x == 0) {
    while (n[0] < gridDim.x);
  }
  __syncthreads();
}
""",
    "rocprim": """CU33
#ifdef USE_ROCM
using R = rocprim::warp_reduce<float, 64>;
#endif
void f() { cudaFree(0); }
""",
}


@pytest.mark.parametrize("kind", MISJUDGED)
def test_what_goes_wrong_on_amd_is_not_a_note(rocmend: Rocmend, tmp_path: Path, kind: str) -> None:
    rule, _, source = MISJUDGED[kind].partition("\n")
    (tmp_path / "a.cu").write_text(source)
    done = rocmend("port", tmp_path, "--json")
    issues = [one for one in data_of(done)["analysis"]["files"][0]["issues"] if one["rule"] == rule]
    assert [one["outcome"] for one in issues] == ["manual"]
    assert rocmend("port", tmp_path, "--apply").code == 1


def test_a_warp_that_decides_as_one_is_no_finding(rocmend: Rocmend, tmp_path: Path) -> None:
    """By data that all lanes read, and by blocks that are split in multiples of 64 threads."""
    (tmp_path / "a.cu").write_text(
        "constexpr int kThreads = 128;\n__global__ void f(int* x, const int* sizes) {\n"
        "  if (threadIdx.x < kThreads) {\n    x[0] = 1;\n    __syncthreads();\n  } else {\n    __syncthreads();\n  }\n"
        "  int bit = 0;\n  const int n = sizes[blockIdx.x];\n  while (true) {\n    bit += 4;\n    __syncthreads();\n"
        "    if (bit >= n) {\n      __syncthreads();\n      break;\n    }\n    __syncthreads();\n  }\n}\n"
    )
    issues = data_of(rocmend("port", tmp_path, "--json"))["analysis"]["files"][0]["issues"]
    assert "CU30" not in {one["rule"] for one in issues}


def test_types_of_8_bits_hold_the_same_bytes(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        "#include <cuda_fp8.h>\n__device__ float f(__nv_fp8_e4m3 x) { return float(x); }\n"
        "int g() { return __NV_E4M3; }\n"
    )
    rocmend("port", tmp_path, "--apply")
    header = (tmp_path / "cuda_to_hip.h").read_text()
    assert "#define __NV_E4M3 __HIP_E4M3\n" in header
    assert "FNUZ" not in header.upper()


def test_what_a_project_chose_is_suggested(rocmend: Rocmend, tmp_path: Path) -> None:
    source = "import torch\n\ntorch.backends.cudnn.benchmark = True\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    (tmp_path / "train.py").write_text(source)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "requirements.txt").write_text(
        "https://download.pytorch.org/whl/cpu/torch-1.11.0%2Bcpu-cp38-cp38-linux_x86_64.whl\nsphinx\n"
    )
    assert rocmend("port", tmp_path, "--apply").code == 1
    assert (tmp_path / "train.py").read_text() == source
    assert not (tmp_path / "docs" / "requirements-rocm.txt").exists()
    assert rocmend("port", tmp_path, "--apply", "--suggestions").code == 0
    assert "is_rocm" in (tmp_path / "train.py").read_text()


def test_a_build_that_has_a_side_for_rocm_is_left_alone(rocmend: Rocmend, tmp_path: Path) -> None:
    """A check that only CUDA's side calls, and options that the author chose for ROCm."""
    (tmp_path / "setup.py").write_text(
        "import warnings\nimport torch\nfrom torch.utils.cpp_extension import CUDA_HOME, CUDAExtension\n\n\n"
        "def check_cuda_home():\n    if CUDA_HOME is not None:\n        return\n    warnings.warn('no nvcc')\n\n\n"
        "HIP_BUILD = bool(torch.version.hip)\nif HIP_BUILD:\n    flags = ['-O3', '-U__CUDA_NO_HALF_OPERATORS__']\n"
        "else:\n    check_cuda_home()\n    flags = ['-O3', '--use_fast_math']\n"
        "CUDAExtension('a', ['a.cu'], extra_compile_args={'nvcc': flags})\n"
    )
    analysis = data_of(rocmend("port", tmp_path, "--json"))["analysis"]
    assert not {one["rule"] for file in analysis["files"] for one in file["issues"]} & {"PY44", "BL15", "BL02"}


@pytest.mark.parametrize("name", ["cuda_missing", "no_cuda", "is_cpu_only_gpu", "has_cuda_11", "gpu_is_blackwell"])
def test_an_answer_that_says_more_than_presence_is_left_to_a_person(
    rocmend: Rocmend, tmp_path: Path, name: str
) -> None:
    source = f"import shutil\n\n\ndef {name}():\n    return shutil.which('nvidia-smi') is None\n"
    (tmp_path / "a.py").write_text(source)
    issues = data_of(rocmend("port", tmp_path, "--json"))["analysis"]["files"][0]["issues"]
    assert [(one["rule"], one["outcome"]) for one in issues] == [("PY44", "manual")]
    rocmend("port", tmp_path, "--apply", "--suggestions")
    assert (tmp_path / "a.py").read_text() == source
