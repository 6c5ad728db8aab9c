"""HIP's names with CUDA's meaning: the header that nvcc reads, with a CUDA of our own on the host."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rocmend.core.supervise import run_command
from rocmend.port.verify.nvidia import find_nvcc
from rocmend.port.verify.reverse import REVERSE, write_headers

SUPPORT = Path(__file__).parents[3] / "src/rocmend/port/support"

# CUDA as far as the header asks for it: one lane, whose warp holds what it holds itself.
CUDA = r"""
#pragma once
#include <cstddef>
#include <cstring>
using std::memcpy;
#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __host__
#define __device__
#define __shared__
#define __forceinline__ inline
#define V(name, type) struct name##1 { type x; }; struct name##2 { type x, y; }; \
  struct name##3 { type x, y, z; }; struct name##4 { type x, y, z, w; };
V(char, signed char) V(uchar, unsigned char) V(short, short) V(ushort, unsigned short) V(int, int)
V(uint, unsigned) V(long, long) V(ulong, unsigned long) V(longlong, long long) V(ulonglong, unsigned long long)
V(float, float) V(double, double)
extern int refused(int);
inline int __any(int x) { return refused(x); }  // what CUDA declares, and does not translate
inline unsigned __ballot(int x) { return refused(x); }
inline unsigned __activemask() { return 1; }
template <typename T> T __shfl_sync(unsigned, T x, int, int) { return x; }
template <typename T> T __shfl_up_sync(unsigned, T x, unsigned, int) { return x; }
template <typename T> T __shfl_down_sync(unsigned, T x, unsigned, int) { return x; }
template <typename T> T __shfl_xor_sync(unsigned, T x, int, int) { return x; }
inline int __any_sync(unsigned, int x) { return x != 0; }
inline int __all_sync(unsigned, int x) { return x != 0; }
inline unsigned __ballot_sync(unsigned mask, int x) { return x ? mask : 0; }
inline void __threadfence() {} inline void __threadfence_block() {} inline void __threadfence_system() {}
inline void __syncthreads() {} inline void __syncwarp(unsigned) {}
template <typename W> W atomicCAS(W *at, W was, W next) { const W old = *at; if (old == was) *at = next; return old; }
"""
PROGRAM = r"""
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>  // of libraries that are not installed
#include <hipcub/hipcub.hpp>
namespace library {
struct __any { __host__ __device__ __any(...) {} };
__host__ __device__ inline bool takes(__any) { return true; }
}
__host__ __device__ inline int2 operator+(int2 a, int2 b) { return {a.x - b.x, a.y - b.y}; }  // goes first
#define CHECK(what) if (!(what)) { std::printf("line %d\n", __LINE__); return 1; }
int main() {
  float4 a{1, 2, 3, 4}, b{4, 3, 2, 1};
  a += b; CHECK(a.x == 5 && a.w == 5);
  a = 2 * a - b / 2.0f; CHECK(a.x == 8 && a.y == 8.5f && a.w == 9.5f);
  a *= 2; CHECK(a.x == 16 && (-a).z == -18 && a != b && b == b);
  uint3 u{6, 7, 8}; u = (u & 3u) << 1u; CHECK(u.x == 4 && u.y == 6 && u.z == 0);
  CHECK((int2{5, 5} + int2{2, 3}).y == 2);
  CHECK(__any(7) == 1 && __any(0) == 0 && __all(1) && __ballot(2) == 1 && sizeof(__ballot(1)) == 8);
  CHECK(library::takes(3) && __shfl(2.5, 0) == 2.5 && __shfl_xor(9, 1, 16) == 9);
  int n = 5; float f = 1.5f; unsigned long long wide = 7, was = 6;
  CHECK(__hip_atomic_fetch_add(&n, -7, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 5 && n == -2);
  CHECK(__hip_atomic_fetch_max(&n, 3, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_SYSTEM) == -2 && n == 3);
  CHECK(__hip_atomic_fetch_min(&n, 4, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP) == 3 && n == 3);
  CHECK(__hip_atomic_exchange(&f, 2.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 1.5f && f == 2);
  CHECK(__hip_atomic_fetch_sub(&f, 0.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 2 && f == 1.5f);
  CHECK(__hip_atomic_fetch_xor(&wide, 2, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 7 && wide == 5);
  CHECK(!__hip_atomic_compare_exchange_strong(&wide, &was, 9ull, __ATOMIC_RELAXED, __ATOMIC_RELAXED, 4) && was == 5);
  CHECK(__hip_atomic_compare_exchange_strong(&wide, &was, 9ull, __ATOMIC_RELAXED, __ATOMIC_RELAXED, 4) && wide == 9);
  __hip_atomic_store(&n, 11, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  CHECK(__hip_atomic_load(&n, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 11);
  CHECK(__atomic_load_n(&n, __ATOMIC_RELAXED) == 11);
  return 0;
}
"""


def test_what_hip_has_means_the_same(tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    write_headers(tmp_path, [PROGRAM.encode()])
    (tmp_path / "cuda_runtime.h").write_text(CUDA)
    (tmp_path / "a.cpp").write_text(PROGRAM)
    options = ["-std=c++17", f"-I{tmp_path}", *REVERSE, "-o", str(tmp_path / "a")]
    built = run_command([compiler, *options, str(tmp_path / "a.cpp")], time_limit_s=120)
    assert built.ok, built.stderr
    ran = run_command([str(tmp_path / "a")], time_limit_s=30)
    assert ran.ok, ran.stdout


def test_no_builtin_that_nvcc_refuses_is_left(tmp_path: Path) -> None:
    """What NVIDIA's compiler does not know, or takes for a function of the host."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "a.cu").write_text('#include "ptx.h"\n#include "warp32_groups.h"\n')
    write_headers(tmp_path, [(SUPPORT / name).read_bytes() for name in ("ptx.h", "warp32.h", "warp32_groups.h")])
    for name in ("cuda_runtime.h", "cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h"):
        (tmp_path / name).write_text("#define __CUDACC__\n" if name == "cuda_runtime.h" else "")
    argv = [compiler, "-E", "-x", "c++", *REVERSE, f"-I{tmp_path}", f"-I{SUPPORT}", str(tmp_path / "a.cu")]
    said = run_command(argv, time_limit_s=60)
    assert said.ok, said.stderr
    # lines of this folder's files and of the support headers alone: the host's own headers use what they like
    ours, text = False, []
    for line in said.stdout.splitlines():
        if line.startswith("# "):
            ours = str(tmp_path) in line or str(SUPPORT) in line
        elif ours:
            text.append(line)
    assert "warp32_match_all_sync" in "".join(text)
    refused = re.findall(r"_Float16|__builtin_ctz|__builtin_amdgcn\w+|__hip_\w+|__builtin_fmaf16", "\n".join(text))
    assert not refused


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
def test_nvcc_takes_it(tmp_path: Path) -> None:
    found = find_nvcc()
    assert found is not None
    write_headers(tmp_path, [PROGRAM.encode()])
    kernel = PROGRAM.replace("int main() {", "__device__ int all() {")
    (tmp_path / "a.cu").write_text(f"{kernel}\n__global__ void k(int *out) {{ *out = all(); }}\n")
    argv = [found.program, "-std=c++17", "-cubin", f"-arch={found.arch}", *REVERSE, f"-I{tmp_path}"]
    said = run_command([*argv, "-o", str(tmp_path / "out"), str(tmp_path / "a.cu")], time_limit_s=300)
    assert said.ok, said.stderr
