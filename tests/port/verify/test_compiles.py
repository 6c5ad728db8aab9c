"""Level 3 with the real compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath
from rocmend.port.cuda.includes import closure
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Evidence, Level, Outcome, Status
from rocmend.port.verify.units import folder_of_header, standard, units

from .conftest import ORIGINAL, PORT, Ported

pytestmark = pytest.mark.usefixtures("pip_compiler")


def compiles(root: Path, *targets: str) -> Level:
    return verify(root, levels=["compile"], targets=targets).levels[0]


def about(level: Level, subject: str) -> list[Evidence]:
    return [one for one in level.evidence if one.subject == subject and one.outcome is not Outcome.NOTE]


@pytest.mark.slow
def test_a_port_compiles_for_its_target_and_for_the_other_wave_size(total: Path) -> None:
    made = compiles(total)
    assert made.status is Status.PASSED, made.evidence
    host, *device = about(made, "src/total.cu")
    assert not host.target
    assert [(one.target, one.wave_size) for one in device] == [("gfx1151", 32), ("gfx942", 64)]
    assert [kernel["wavefront_size"] for one in device for kernel in one.data["kernels"]] == [32, 64]
    assert "gfx1151 (wave32), gfx942 (wave64)" in made.summary


def test_a_source_that_was_not_ported_asks_for_nvidias_header(ported: Ported) -> None:
    made = compiles(ported({"total.cu": ORIGINAL}, {"note.txt": b"a port that forgot it\n"}), "gfx942", "gfx1100")
    assert made.status is Status.FAILED
    assert all("NVIDIA's" in one.detail for one in about(made, "total.cu"))


@pytest.mark.slow
def test_a_headers_place_in_the_project_is_found(ported: Ported) -> None:
    header = b"#pragma once\n#include <hip/hip_runtime.h>\n__device__ inline int twice(int x) { return 2 * x; }\n"
    source = b'#include "deep/twice.cuh"\n__global__ void k(int* x) { *x = twice(*x); }\n'
    files = {"lib/kernels/deep/twice.cuh": header, "app/k.cu": source}
    made = compiles(ported(files, {"README": b"ported\n"}), "gfx942", "gfx1100")
    assert made.status is Status.PASSED, made.evidence


@pytest.mark.slow
def test_the_folder_in_which_one_stands_is_the_project(ported: Ported) -> None:
    """A file of the project is not taken for one outside where the folder is given as ``.``."""
    files = {
        "lib/deep/wrong.cuh": b"#pragma once\nint wrong = absent;\n",
        "a.cu": b'#include "deep/wrong.cuh"\n' + PORT,
    }
    root = ported(files, {"README": b"ported\n"})
    command = [sys.executable, "-P", "-m", "rocmend", "port", "verify", ".", "--level", "compile", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=120)
    assert "undeclared identifier 'absent'" in done.stdout
    assert "outside of the project" not in done.stdout


EXTENSION = b"""#include <ATen/cuda/CUDAContext.h>
#include <torch/types.h>

__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

void run(torch::Tensor x, double by) {
  scale<<<(x.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), by, x.numel());
  AT_CUDA_CHECK(cudaGetLastError());
  at::cuda::getCurrentCUDABlasHandle();
}
"""


@pytest.mark.slow
def test_an_extension_compiles_against_torchs_headers_without_rocm(ported: Ported) -> None:
    pytest.importorskip("torch")
    root = ported({"scale.cu": EXTENSION}, {"README": b"ported\n"})
    command = [sys.executable, "-P", "-m", "rocmend", "port", "verify", ".", "--level", "compile", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=570)
    level = next(one for one in json.loads(done.stdout)["data"]["levels"] if one["name"] == "compile")
    assert level["status"] == "passed", level
    assert "hipblas/hipblas.h" in level["summary"]
    assert "on the host are not proven" in level["summary"]


BY_HAND = b"""#include <ATen/hip/HIPContext.h>
#include <ATen/hip/impl/HIPGuardImplMasqueradingAsCUDA.h>
#include <c10/hip/HIPException.h>
#include <torch/types.h>

__global__ void scale(float* x, float by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

void run(torch::Tensor x, double by) {
  const c10::hip::OptionalHIPGuardMasqueradingAsCUDA guard(x.device());
  hipStream_t stream = c10::hip::getCurrentHIPStream();
  scale<<<(x.numel() + 255) / 256, 256, 0, stream>>>(x.data_ptr<float>(), by, x.numel());
  C10_CUDA_CHECK(hipGetLastError());
}
"""


@pytest.mark.slow
def test_an_extension_that_was_written_for_rocm_compiles_without_it(ported: Ported) -> None:
    """Torch's build for ROCm has the same headers under another name."""
    torch = pytest.importorskip("torch")
    header = Path(torch.__file__).parent / "include/c10/cuda/CUDAStream.h"
    if b"namespace c10::hip" not in header.read_bytes():
        pytest.skip("its names for ROCm are others")
    root = ported({"scale.cu": BY_HAND}, {"README": b"ported\n"})
    made = compiles(root, "gfx942", "gfx1100")
    assert made.status is Status.PASSED, made.evidence


@pytest.mark.slow
def test_files_have_the_names_that_the_project_gives_them(ported: Ported) -> None:
    """Not those of the copy with translated names, in the user's cache."""
    source = b'#include <torch/wrong.h>\n#include "wrong.cuh"\n' + PORT
    files = {"a.cu": source, "wrong.cuh": b"__device__ int f() { return absent; }\n", "inc/torch/wrong.h": b"\n"}
    made = compiles(ported(files, {"README": b"ported\n"}), "gfx942", "gfx1100")
    broken = [one for one in made.evidence if one.outcome is Outcome.BROKEN]
    assert broken, made.evidence
    assert all(one.detail.removeprefix("host code: ").startswith("wrong.cuh:1:") for one in broken), broken
    assert "translated" not in repr(broken)


CUB = b"""#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

__global__ void total(const float* in, float* out) {
  using Reduce = hipcub::BlockReduce<float, 64>;
  __shared__ Reduce::TempStorage storage;
  const float sum = Reduce(storage).%s;
  if (threadIdx.x == 0) *out = sum;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "status"),
    [
        (b"Sum(in[threadIdx.x])", Status.PASSED),
        (b"Reduce(in[threadIdx.x], hipcub::Sum(), 64, nullptr)", Status.INCOMPLETE),
        (b"Fold(in[threadIdx.x])", Status.INCOMPLETE),
        (b"Sum(absent[threadIdx.x])", Status.FAILED),
    ],
)
def test_a_call_that_our_hipcub_lacks_leaves_it_undecided(call: bytes, status: Status, ported: Ported) -> None:
    made = compiles(ported({"total.cu": ORIGINAL}, {"total.cu": CUB % call}), "gfx942", "gfx1100")
    assert made.status is status, made.evidence
    assert "hipcub/hipcub.hpp" in made.summary


@pytest.mark.slow
def test_torchs_headers_are_found_where_a_header_without_cuda_includes_them(ported: Ported) -> None:
    pytest.importorskip("torch")
    files = {
        "op.h": b"#pragma once\n#include <c10/macros/Macros.h>\nint run(int);\n",
        "op.cu": b'#include "op.h"\n__global__ void k() {}\nint run(int n) { k<<<1, 1>>>(); return n; }\n',
    }
    root = ported(files, {"README": b"ported\n"})
    command = [sys.executable, "-P", "-m", "rocmend", "port", "verify", ".", "--level", "compile", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=120)
    level = next(one for one in json.loads(done.stdout)["data"]["levels"] if one["name"] == "compile")
    assert level["status"] == "passed", level


@pytest.mark.slow
def test_pytorchs_build_translates_sources_without_its_headers_too(tmp_path: Path) -> None:
    """A project that PyTorch builds for ROCm already: nothing is to be ported, and it compiles as it is."""
    (tmp_path / "setup.py").write_text(
        "import torch\nfrom setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
        "for_rocm = torch.version.hip is not None\nsetup(name='k', ext_modules=[CUDAExtension('k', ['k.cu'])])\n"
    )
    (tmp_path / "k.cu").write_text(
        "#include <cuda_runtime.h>\n#ifdef __CUDACC__\n__global__ void k() {}\n#endif\n"
        "void run(cudaStream_t stream) { k<<<1, 1, 0, stream>>>(); }\n"
    )
    command = [sys.executable, "-P", "-m", "rocmend", "port", "verify", ".", "--level", "compile", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    level = next(one for one in json.loads(done.stdout)["data"]["levels"] if one["name"] == "compile")
    assert level["status"] == "passed", level


@pytest.mark.slow
def test_a_header_that_is_not_here_leaves_it_undecided(ported: Ported) -> None:
    source = PORT.replace(
        b"#include <hip/hip_runtime.h>", b"#include <hip/hip_runtime.h>\n#include <rocwmma/rocwmma.hpp>"
    )
    made = compiles(ported({"total.cu": ORIGINAL}, {"total.cu": source}), "gfx942", "gfx1100")
    assert made.status is Status.INCOMPLETE
    (told,) = [one for one in made.evidence if one.outcome is Outcome.UNKNOWN]
    assert (told.subject, told.data) == ("rocwmma/rocwmma.hpp", {"units": ["total.cu"]})
    assert "rocwmma-dev" in told.detail
    assert "pip install" in told.detail
    assert "0 of 1 translation units compile" in made.summary


@pytest.mark.slow
def test_errors_in_headers_of_others_leave_it_undecided(
    ported: Ported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another's header asks for is not the port's mistake; what a source makes of a header is."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "broken.h").write_text("#pragma once\nint broken = absent;\n")
    (other / "strict.h").write_text("#pragma once\ntemplate <class T> struct Strict { typename T::type t; };\n")
    monkeypatch.setenv("ROCMEND_HIP_HEADERS", str(other))
    files = {
        "a.cu": b"#include <hip/hip_runtime.h>\n#include <broken.h>\n__global__ void k() {}\n",
        "b.cu": b"#include <hip/hip_runtime.h>\n#include <strict.h>\nStrict<int> s;\n__global__ void k() {}\n",
    }
    made = compiles(ported(files, {"README": b"ported\n"}), "gfx942", "gfx1100")
    assert {one.outcome for one in about(made, "a.cu")} == {Outcome.UNKNOWN}
    assert "not the project's" in about(made, "a.cu")[0].detail
    assert {one.outcome for one in about(made, "b.cu")} == {Outcome.BROKEN}


@pytest.mark.slow
def test_what_setup_py_defines_for_rocm_is_defined(ported: Ported) -> None:
    setup = (
        b"import os\nimport torch\nfrom torch.utils.cpp_extension import CUDAExtension\n\n"
        b"flags = ['-DENABLE_BF16', '-DWIDTH=4', '-UUSE_ROCM_OFF', '-U__HIP_PLATFORM_NONE__']\n"
        b"if torch.version.hip is None:\n    flags += ['-DFOR_CUDA']\n"
        b"if os.environ.get('DEBUG'):\n    flags += ['-DFOR_DEBUG']\n"
        b"CUDAExtension('a', ['a.cu'], define_macros=[('WITH_HIP', None)], extra_compile_args={'nvcc': flags})\n"
    )
    source = (
        b"#include <hip/hip_runtime.h>\n#if defined(FOR_CUDA) || defined(FOR_DEBUG)\n#error wrong\n#endif\n"
        b"#if !defined(ENABLE_BF16) || !defined(WITH_HIP)\n#error lacking\n#endif\n"
        b"__global__ void k(int* x) { x[0] = WIDTH; }\n"
    )
    made = compiles(ported({"a.cu": source, "setup.py": setup}, {"README": b"ported\n"}), "gfx942", "gfx1100")
    assert made.status is Status.PASSED, made.evidence


@pytest.mark.slow
def test_what_the_makefile_defines_is_defined(ported: Ported) -> None:
    makefile = b"DEBUG = no\nFLAGS = -DWIDTH=4\nifeq ($(DEBUG),yes)\nFLAGS += -DWRONG\nendif\n"
    makefile += b"%.o: %.cu\n\thipcc $(FLAGS) -c $< -o $@\n"
    source = b"#include <hip/hip_runtime.h>\n#ifdef WRONG\n#error\n#endif\n__global__ void k(int* x) { *x = WIDTH; }\n"
    root = ported({"k/a.cu": source, "k/Makefile": makefile}, {"README": b"ported\n"})
    command = [sys.executable, "-m", "rocmend.cli.main", "port", "verify", str(root), "--level", "compile", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("options", [b"-fgpu-rdc -c", b"-c"])
def test_device_code_of_another_unit_is_linked_where_the_build_says_so(ported: Ported, options: bytes) -> None:
    caller = (
        b"#include <hip/hip_runtime.h>\n__device__ int twice(int);\n__global__ void k(int* x) { *x = twice(*x); }\n"
    )
    makefile = b"%.o: %.cu\n\thipcc " + options + b" $< -o $@\n"
    root = ported({"a.cu": caller, "Makefile": makefile}, {"README": b"ported\n"})
    command = [sys.executable, "-m", "rocmend.cli.main", "port", "verify", str(root), "--level", "compile", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if b"rdc" in options else 1), done.stdout


@pytest.mark.slow
def test_an_error_names_its_line_and_one_bad_unit_hides_no_good_one(ported: Ported) -> None:
    wrong = PORT.replace(b"__shfl_down(value", b"__shfl_across(value")
    root = ported({"a.cu": ORIGINAL, "b.cu": ORIGINAL}, {"a.cu": wrong, "b.cu": PORT})
    made = compiles(root, "gfx942", "gfx1100")
    assert made.status is Status.FAILED
    assert {one.outcome for one in about(made, "b.cu")} == {Outcome.HOLDS}
    assert {one.line for one in about(made, "a.cu")} == {10}
    assert made.summary.startswith("1 of 2 translation units compile")


@pytest.mark.slow
def test_scratch_and_stand_ins_are_told(ported: Ported) -> None:
    source = b"""#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
__global__ void k(const int* at, __half* x) {
  __half a[64];
  for (int i = 0; i < 64; ++i) a[i] = x[i * 7];
  for (int i = 0; i < 64; ++i) a[at[i]] = x[i];
  for (int i = 0; i < 64; ++i) x[i] = a[i];
}
"""
    made = compiles(ported({"k.cu": source}, {"README": b"ported\n"}), "gfx942", "gfx1100")
    assert made.status is Status.PASSED, made.evidence
    notes = [one for one in made.evidence if one.outcome is Outcome.NOTE]
    assert any(one.detail.startswith("scratch: ") for one in notes)
    assert any(one.subject == "hip/hip_fp16.h" and "substitute" in one.detail for one in notes)


def test_without_a_compiler_it_did_not_run(total: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCMEND_HIP_COMPILER", "/nowhere/hipcc")
    made = compiles(total)
    assert made.status is Status.NOT_RUN
    assert "no clang or hipcc that runs" in made.why


def test_a_compiler_that_crashes_says_nothing_of_the_source(
    total: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = "clang: error: clang frontend command failed with exit code 139 (use -v to see invocation)"
    for name in ("clang++", "ld.lld"):
        script = f'#!/bin/sh\n[ "$1" = --version ] && exec echo clang version 22.0\necho "{crash}" >&2\nexit 139\n'
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("ROCMEND_HIP_COMPILER", str(tmp_path / "clang++"))
    made = compiles(total)
    assert {one.outcome for one in about(made, "src/total.cu")} == {Outcome.UNKNOWN}
    assert made.status is not Status.PASSED


def test_a_source_that_another_one_includes_is_no_unit() -> None:
    sources = {
        "src/main.cu": b'#include "kernel.cu"\n#include "../lib/more.cu"\n',
        "src/kernel.cu": b"__global__ void k() {}\n",
        "lib/more.cu": b"__global__ void m() {}\n",
        "lib/kernel.cu": b"__global__ void of_the_same_name() {}\n",
    }
    assert [unit.path for unit in units(sources)] == ["lib/kernel.cu", "src/main.cu"]


def test_units_headers_and_what_they_include() -> None:
    sources = {
        "a/k.cu": b'#include "h.cuh"\n__global__ void k() {}\n',
        "b/h.cuh": b'#include <deep/i.h>\n#include "h.cuh"\n',
        "b/deep/i.h": b"#include <torch/extension.h>\n",
        "host.cpp": b"#include <cuda_runtime.h>\n",
        "kernel.cpp": b"void f() { k<<<1, 1>>>(); }\n",
    }
    assert [(unit.path, unit.torch) for unit in units(sources)] == [("a/k.cu", True), ("kernel.cpp", False)]
    assert closure("a/k.cu", sources) == {"a/k.cu", "b/h.cuh", "b/deep/i.h"}
    assert folder_of_header("deep/i.h", sources) == "b"
    assert folder_of_header("k.cu", sources) == "a"
    assert folder_of_header("none.h", sources) is None
    assert folder_of_header("../b/h.cuh", sources) is None


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("Makefile", "NVCCFLAGS = -O3 -std=c++14\n", "-std=c++17"),
        ("CMakeLists.txt", "set(CMAKE_CUDA_STANDARD 20)\n", "-std=c++20"),
        ("setup.py", "extra_compile_args=['-std=gnu++20']\n", "-std=c++20"),
        ("setup.cfg", "-std=c++23", "-std=c++17"),
    ],
)
def test_the_standard_that_a_build_asks_for(name: str, text: str, option: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with Beneath(tmp_path) as tree:
        assert standard(tree) == option


@pytest.mark.slow
def test_a_compiler_that_lacks_memory_leaves_it_undecided(ported: Ported) -> None:
    """Three quarters of the machine's memory are for all compilers together; here even that is not given."""
    large = b"__constant__ char big[1u << 30] = {1};\n__global__ void use(int* x) { x[0] = big[x[1]]; }\n"
    root = ported({"total.cu": ORIGINAL, "big.cu": ORIGINAL + large}, {"total.cu": PORT, "big.cu": PORT + large})
    given = 1400 << 20
    limited = (
        f"ulimit -v {given >> 10} && exec {sys.executable} -P -m rocmend port verify . --level compile --json --jobs 1"
    )
    done = subprocess.run(["sh", "-c", limited], cwd=root, capture_output=True, text=True, check=False, timeout=570)
    level = next(one for one in json.loads(done.stdout)["data"]["levels"] if one["name"] == "compile")
    assert level["status"] == "incomplete", level
    assert {one["subject"] for one in level["evidence"] if one["outcome"] == "unknown"} == {"big.cu"}
    assert any("needed more memory than the 1.37 GiB" in one["detail"] for one in level["evidence"])
