"""Projects that have code for ROCm already: what they count on is not broken, and what disagrees is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .conftest import Done

Installed = Callable[..., "Done"]

BALLOT_OF_64 = {
    "render.cu": """#include <cuda_runtime.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void count(const int* in, int* done) {
  cg::coalesced_group warp = cg::coalesced_threads();
#if defined(__CUDACC__) && defined(__HIP_PLATFORM_AMD__)
  unsigned long long found = __ballot(in[threadIdx.x]);
  int bits = __popcll(found);
#else
  unsigned found = warp.ballot(in[threadIdx.x]);
  int bits = __popc(found);
#endif
  if (warp.thread_rank() == 0) atomicAdd(done, bits);
}
"""
}
TILE_OF_64 = {
    "raster.cu": """#include <cuda_runtime.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* x) {
#if USE_ROCM
  auto warp = cg::tiled_partition<64>(cg::this_thread_block());
#else
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
#endif
  if (!warp.any(x[threadIdx.x] > 0)) return;
  x[threadIdx.x] = 1;
}
"""
}
HELPER_OF_64 = {
    "inc/reduce.cuh": """#pragma once
#ifdef USE_ROCM
__device__ inline int warpReduce(int v) {
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_down(v, o);
  return v;
}
#else
__device__ inline int warpReduce(int v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
#endif
""",
    "sum.cu": """#include <cuda_runtime.h>
#include "reduce.cuh"
__global__ void sum(const int* in, int* out) {
  __shared__ int part[32];
  int v = warpReduce(in[threadIdx.x]);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) for (int i = 0; i < blockDim.x / 32; i++) out[0] += part[i];
}
""",
    "apart.cu": """#include <cuda_runtime.h>
#include "reduce.cuh"
__global__ void own(int* x) { x[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], threadIdx.x % 32); }
""",
}


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    project = tmp_path / "project"
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    return project


def found(installed: Installed, project: Path, *options: str) -> list[dict[str, Any]]:
    done = installed("port", str(project), "--format", "jsonl", *options)
    return [one for one in map(json.loads, done.out.splitlines()) if one["rule"] != "CU40"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "path", "rules"),
    [
        (BALLOT_OF_64, "render.cu", ["CU14", "CU14"]),
        (TILE_OF_64, "raster.cu", ["CU14"]),
        (HELPER_OF_64, "sum.cu", ["CU07"]),
    ],
)
def test_nothing_becomes_32_lanes_beside_code_of_64(
    installed: Installed, tmp_path: Path, files: dict[str, str], path: str, rules: list[str]
) -> None:
    """Counts double, a tile of 64 does not compile with helpers of 32, half of a sum is lost: all on gfx942 only."""
    project = written(tmp_path, files)
    before = [(one["rule"], one["outcome"]) for one in found(installed, project) if one["path"] == path]
    assert before == [(rule, "manual") for rule in rules]
    assert installed("port", str(project), "--apply").code == 1
    assert "warp32" not in (project / path).read_text()
    again = [(one["rule"], one["outcome"]) for one in found(installed, project, "--no-cache") if one["path"] == path]
    assert again == before
    assert installed("port", "verify", str(project), "--level", "static").code == 1


def test_a_file_that_uses_nothing_of_the_header_is_rewritten(installed: Installed, tmp_path: Path) -> None:
    project = written(tmp_path, HELPER_OF_64)
    rewritten = [one for one in found(installed, project) if one["path"] == "apart.cu"]
    assert [(one["rule"], one["outcome"]) for one in rewritten] == [("CU01", "auto")]


ASKS_FOR_THE_COMPILER = {
    "both.h": """#pragma once
#ifdef __CUDACC__
#include "lib/half.h"
#define DEVICE __host__ __device__
#else
#define DEVICE
#endif
#if defined(__NVCC__) || defined(__CUDACC__)
struct Lane { int number; };
#endif
DEVICE inline int twice(int v) { return v + v; }
""",
    "lib/half.h": """#pragma once
#ifdef __CUDACC__
#error "CUDA's headers are asked for"
#endif
""",
    "k.cu": """#include <cuda_runtime.h>
#include "both.h"
#include "lib/half.h"
__global__ void k(Lane* x) { x[threadIdx.x].number = twice(threadIdx.x); }
""",
}


@pytest.mark.slow
def test_the_compilers_name_is_defined_for_the_projects_conditions_alone(installed: Installed, tmp_path: Path) -> None:
    """Defined for all, it made PyTorch's headers include CUDA's; not defined, device code vanishes."""
    files = {path: text for path, text in ASKS_FOR_THE_COMPILER.items() if path != "lib/half.h"}
    project = written(tmp_path, files)
    (project / "lib").mkdir()
    (project / "lib" / "half.h").write_text("int half;\n")
    assert installed("port", str(project), "--apply").code == 0
    (project / "lib" / "half.h").write_text(ASKS_FOR_THE_COMPILER["lib/half.h"])
    done = installed("port", "verify", str(project), "--level", "compile", "--json")
    assert json.loads(done.out)["data"]["levels"][2]["counts"]["holds"] == 3, done.out


OWN_FREE = {
    "compat.h": """#pragma once
#ifdef USE_ROCM
#include <hip/hip_runtime.h>
static inline hipError_t cudaFree(void* p) { return p ? hipFree(p) : hipSuccess; }
#else
#include <cuda_runtime.h>
#endif
""",
    "k.cu": """#include "compat.h"
__global__ void k(int* x) { x[threadIdx.x] = threadIdx.x % warpSize; }
void gone(int* x) { cudaFree(x); }
""",
}


@pytest.mark.slow
def test_a_port_that_compiles_less_than_the_project_did_is_refused(installed: Installed, tmp_path: Path) -> None:
    """The project's own ``cudaFree`` for ROCm and the generated header's are not one."""
    project = written(tmp_path, OWN_FREE)
    before = {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()}
    done = installed("port", str(project), "--apply")
    told = " ".join(done.err.split())
    assert done.code == 2
    assert "would break what compiles for ROCm now: k.cu. Nothing was written." in told
    assert "static declaration of 'hipFree'" in told
    assert {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()} == before
    assert installed("port", str(project), "--apply", "--no-compile").code == 0
    assert installed("port", "verify", str(project), "--level", "compile").code == 1


@pytest.mark.slow
def test_a_project_that_did_not_compile_before_is_said_to_be_untested(installed: Installed, tmp_path: Path) -> None:
    project = written(tmp_path, {**OWN_FREE, "k.cu": OWN_FREE["k.cu"] + "int wrong = absent;\n"})
    done = installed("port", str(project), "--apply")
    told = " ".join((done.out + done.err).split())
    assert "own in 1 translation unit. None of them compiles as it is, so the port could not be compared" in told
    assert "undeclared identifier 'absent'" in told


OWN_MACRO = {
    "CMakeLists.txt": """project(p LANGUAGES CXX)
if(BUILD_HIP)
  enable_language(HIP)
  add_compile_definitions(__HIP_PLATFORM_AMD__ BUILD_HIP)
else()
  enable_language(CUDA)
endif()
""",
    "compat.h": """#pragma once
#if defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
#define ON_AMD 1
#else
#define ON_AMD 0
#endif
""",
    "k.cu": """#include "compat.h"
#if ON_AMD
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#include <mma.h>
#endif
__global__ void k(int* x) {
#if ON_AMD
  x[threadIdx.x] = __popcll(__ballot(x[threadIdx.x]));
#else
  unsigned found = __ballot_sync(0xffffffff, x[threadIdx.x]);
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3};" : : "r"(x[0]));
  x[threadIdx.x] = __popc(found);
#endif
}
#ifdef BUILD_HIP
int lanes() { return warpSize; }
#endif
""",
}


@pytest.mark.slow
def test_conditions_are_read_with_the_projects_own_macros(installed: Installed, tmp_path: Path) -> None:
    """A macro of another file, or of the build, says what is for ROCm: that stays, and CUDA's side has no findings."""
    project = written(tmp_path, OWN_MACRO)
    assert [one["rule"] for one in found(installed, project) if one["path"] == "k.cu"] == []
    data = json.loads(installed("port", str(project), "--json").out)["data"]
    assert data["project"]["rocm"]["ways"][0] == "branches for ROCm in k.cu (BUILD_HIP, ON_AMD)"
    assert data["analysis"]["macros"] == {"BUILD_HIP": [1, None], "ON_AMD": [1, 0]}
    told = installed("port", str(project), "--target", "gfx1151").out
    first, plan = " ".join(told.split()).split(" Plan ")[:2]
    assert "This project supports ROCm already" in first
    assert "a build for HIP: CMakeLists.txt" in first
    assert "builds HIP without USE_ROCM" in first
    assert "BL16" in plan
    apart = tmp_path / "apart"
    apart.mkdir()
    (apart / "k.cu").write_text(OWN_MACRO["k.cu"])
    assert "CU16" in [one["rule"] for one in found(installed, apart)], "the file alone does not say so"


GUESSED = """#include <cuda_runtime.h>
__global__ void k(int* x) {
#if defined(NAME) && NAME
  x[0] = 1;
#else
  x[threadIdx.x] = __popc(__ballot_sync(0xffffffff, x[threadIdx.x]));
#endif
}
"""


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("NO_ROCM", {"CMakeLists.txt": "option(NO_ROCM)\ntarget_compile_definitions(x PRIVATE NO_ROCM)\n"}),
        ("USE_HIP_FAST", {"Makefile": "CFLAGS += -DUSE_HIP_FAST=0\n"}),
        (
            "WITH_COUNT",
            {"config.h": "#ifdef USE_ROCM\n#define WITH_COUNT 1\n#endif\n", "Makefile": "NVCC += -DWITH_COUNT=1\n"},
        ),
        (
            "VEC",
            {
                "config.h": "#ifdef USE_ROCM\n#define VEC 1\n#else\n#define VEC 0\n#endif\n",
                "other.h": "#define VEC 0\n",
            },
        ),
    ],
)
def test_no_branch_is_dropped_on_a_guess(installed: Installed, tmp_path: Path, name: str, more: dict[str, str]) -> None:
    """What ROCm's build may not define, or defines otherwise, says nothing about which branch it compiles."""
    project = written(tmp_path, {"k.cu": GUESSED.replace("NAME", name), **more})
    data = json.loads(installed("port", str(project), "--json").out)["data"]
    assert name not in data["analysis"].get("macros", {})
    assert any("__ballot_sync" in one["snippet"] for one in found(installed, project))


BUILT_BY_TORCH = {
    "setup.py": """import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

for_rocm = torch.version.hip is not None
sources = ["a.cu", "b.cu", "c.cu", "sum.cu", "swap.cu"]
setup(name="x", ext_modules=[CUDAExtension("x", sources)], cmdclass={"build_ext": BuildExtension})
""",
    "a.cu": """#include <ATen/cuda/CUDAContext.h>
#include <cuda_fp16.h>
#include "both.h"
__global__ void k(__half* x) { x[threadIdx.x] = x[0]; }
void run(__half* x) {
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
#ifdef USE_ROCM
  k<<<1, 64, 0, stream>>>(x);
#else
  k<<<1, 32, 0, stream>>>(x);
#endif
}
""",
    "b.cu": """#include <cuda_runtime.h>
void fetch(void* x, cudaMemLocation where) { cudaMemPrefetchAsync(x, 4, where, 0, 0); }
""",
    "sum.cu": """#include <cub/cub.cuh>
__global__ void total(int* x) {
  using Reduce = cub::BlockReduce<int, 64>;
  __shared__ typename Reduce::TempStorage scratch;
  x[0] = Reduce(scratch).Sum(x[threadIdx.x]);
}
""",
    "swap.cu": "#include <cub/cub.cuh>\ncub::DoubleBuffer<int> both(int* x, int* y) { return {x, y}; }\n",
    "half.h": """#pragma once
#include <cuda_fp16.h>
__device__ inline void atomicAdd(__half2* x, __half2 v) { *x = __hadd2(*x, v); }
""",
    "c.cu": """#include "half.h"
__global__ void add(__half2* x) { atomicAdd(x, __half2half2(__half(1))); }
""",
    "both.h": """#pragma once
#ifdef __CUDACC__
#define DEVICE __host__ __device__
#else
#define DEVICE
#endif
DEVICE inline int twice(int v) { return v + v; }
""",
}


def rewritten(installed: Installed, project: Path, *options: str) -> set[str]:
    done = installed("port", str(project), "--format", "jsonl", *options)
    return {one["path"] for one in map(json.loads, done.out.splitlines()) if one["outcome"] == "auto"}


def test_what_pytorchs_build_translates_for_rocm_is_left_as_it_is(installed: Installed, tmp_path: Path) -> None:
    """The project compiles on ROCm: a header of names in each source is nothing that anyone would merge."""
    project = written(tmp_path, BUILT_BY_TORCH)
    assert rewritten(installed, project) == {"b.cu", "swap.cu"}
    assert installed("port", str(project), "--apply", "--no-compile").code in {0, 1}
    assert (project / "a.cu").read_text() == BUILT_BY_TORCH["a.cu"]
    assert (project / "both.h").read_text() == BUILT_BY_TORCH["both.h"]
    assert rewritten(installed, project, "--no-cache") == set()


@pytest.mark.parametrize(
    ("path", "text", "also"),
    [
        ("CMakeLists.txt", "project(x LANGUAGES CXX CUDA)\nadd_library(x a.cu b.cu)\n", {"a.cu", "both.h", "half.h"}),
        ("setup.py", BUILT_BY_TORCH["setup.py"].replace("torch.version.hip is not None", "False"), set()),
        ("d.cu", "#ifdef __CUDACC__\n#include <cuda_pipeline.h>\n#endif\n", set()),
    ],
)
def test_another_build_needs_the_names(
    installed: Installed, tmp_path: Path, path: str, text: str, also: set[str]
) -> None:
    """CMake translates nothing; a project whose sources have branches for ROCm supports it whatever setup.py says."""
    project = written(tmp_path, {**BUILT_BY_TORCH, path: text})
    assert rewritten(installed, project) - {path, "c.cu", "d.cu", "sum.cu", "swap.cu"} == {"b.cu"} | also


def test_a_project_without_support_for_rocm_gets_the_names(installed: Installed, tmp_path: Path) -> None:
    plain = {
        name: text.replace("USE_ROCM", "OTHER").replace("version.hip", "x") for name, text in BUILT_BY_TORCH.items()
    }
    project = written(tmp_path, plain)
    assert rewritten(installed, project) >= {"a.cu", "b.cu"}
    assert "push_macro" not in (project / "both.h").read_text()
    assert installed("port", str(project), "--apply", "--no-compile").code in {0, 1}
    assert "push_macro" not in (project / "both.h").read_text()
    assert "cuda_to_hip.h" in (project / "a.cu").read_text()
    assert rewritten(installed, project, "--no-cache") == set()
