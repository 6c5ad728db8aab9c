"""The helpers, and kernels that rules port, as code objects for wavefronts of 32 and of 64 lanes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocmend.codeobject.hip import HipObject, NoToolchainError, compile_hip, find_toolchain
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.write import ported
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import rules

HERE = Path(__file__).parent
SUPPORT = Path(__file__).parents[3] / "src" / "rocmend" / "port" / "support"
TARGETS = ["gfx942", "gfx1100", "gfx1201"]
TYPES = ["int", "unsigned", "long", "unsigned long", "long long", "unsigned long long", "float", "double"]


@pytest.fixture(autouse=True)
def _toolchain() -> None:
    try:
        find_toolchain()
    except NoToolchainError as error:
        pytest.skip(str(error))


def compiled(source: str, target: str) -> HipObject:
    made = compile_hip(source.encode(), target, defines={"USE_ROCM": ""}, include_dirs=[SUPPORT], options=["-O1"])
    assert isinstance(made, HipObject), made
    return made


def helpers() -> str:
    """A kernel for each type that calls every helper."""
    kernels = []
    for at, kind in enumerate(TYPES):
        shuffles = "".join(
            f"  v += warp32_{name}(v, 3) + warp32_{name}_sync(~0u, v, 1, 16);\n"
            for name in ("shfl", "shfl_up", "shfl_down", "shfl_xor")
        )
        matches = "  m += warp32_match_any_sync(~0u, v) + warp32_match_all_sync(~0u, v, &same);\n"
        reductions = ""
        if kind in {"int", "unsigned"}:
            names = ["add", "min", "max"] + (["and", "or", "xor"] if kind == "unsigned" else [])
            reductions = "".join(f"  v += warp32_reduce_{name}_sync(~0u, v);\n" for name in names)
        kernels.append(
            f"__global__ void k{at}({kind}* x, unsigned* mask) {{\n"
            f"  {kind} v = x[threadIdx.x];\n  unsigned m = warp32_ballot_sync(~0u, v > 2) & warp32_activemask();\n"
            f"  int same;\n{shuffles}{matches}{reductions}  warp32_syncwarp();\n"
            "  m ^= warp32_any_sync(m, m) + warp32_all_sync(m, m) + warp32_any(m) + warp32_all(m) + warp32_ballot(m);\n"
            "  x[threadIdx.x] = v;\n  mask[threadIdx.x] = m + warp32_lanemask_lt();\n}\n"
        )
    return '#include <hip/hip_runtime.h>\n#include "warp32.h"\n' + "".join(kernels)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_helpers(target: str) -> None:
    made = compiled(helpers(), target)
    assert made.wave_size == (64 if target == "gfx942" else 32)


LABELS = """#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include "warp32.h"
#include "warp32_groups.h"
__global__ void k(int* x, unsigned* masks) {
  auto group = warp32_groups::coalesced_threads();
  masks[threadIdx.x] = warp32_groups::ballot(group, x[threadIdx.x] > 0);
  x[threadIdx.x] = group.shfl(x[threadIdx.x], 1);
  auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
  masks[threadIdx.x + 32] = warp32_groups::labeled_partition(tile, x[threadIdx.x]).size();
}
"""

KERNEL = """#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include "warp32.h"
#include "warp32_groups.h"
namespace cg = cooperative_groups;
#define WARP_SIZE 32
__global__ void k(float* x, unsigned* masks, int n) {
  __shared__ float sums[32];
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int lane = threadIdx.x & 0x1f;
  float v = lane < n ? x[threadIdx.x] : 0;
  for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
  v += cg::reduce(tile, v, cg::plus<float>());
  if (lane == 0) sums[threadIdx.x / WARP_SIZE] = v;
  __syncthreads();
  unsigned seen = __ballot_sync(__activemask(), v > sums[lane]);
  masks[threadIdx.x] = seen & ((1u << lane) - 1);
  x[threadIdx.x] = v + __popc(seen);
}
"""


GROUPS = """#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include "warp32.h"
#include "warp32_groups.h"
namespace cg = cooperative_groups;
struct Mine {
  __device__ int any(int) const { return 7; }
  __device__ bool ballot(float) const { return true; }
};
template <typename Group>
__device__ unsigned votes(const Group& group, int v, bool p) {
  int same = 0;
  unsigned seen = group.ballot(p) + (group.ballot(v) << 31) + group.any(p) + group.all(p > 0);
  seen += group.match_any(v) + group.match_any(2.5) + group.match_all(v, same) + same;
  return seen + cg::binary_partition(group, p).size();
}
__global__ void k(unsigned* out, int v) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
  cg::coalesced_group here = cg::coalesced_threads();
  Mine mine;
  out[threadIdx.x] = votes(tile, v, v > 1) + votes(warp, v, v > 2) + votes(here, v, v > 3) + here.size();
  out[threadIdx.x] += mine.any(1) + mine.ballot(2.0f) + cg::reduce(here, v, cg::plus<int>());
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_ported_groups(target: str) -> None:
    data = GROUPS.encode()
    file = CudaFile("kernel.cu", data)
    (rule,) = [rule for rule in rules(Language.CUDA) if rule.id == "CU14"]
    issues = rule.issues(file)
    assert len(issues) == 13
    assert all(issue.outcome is Outcome.AUTO for issue in issues)
    compiled(ported(data, issues).decode(), target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_groups_of_any_lanes_take_no_loops_over_lanes(target: str) -> None:
    """Votes, shuffles and parts of a coalesced group are arithmetic on masks; a label's bits are one loop."""
    made = compiled(LABELS, target)
    assert made.kernels[0].scratch_bytes == 0
    labels = re.findall(r"^(\.LBB\w+):", made.assembly, re.MULTILINE)
    jumps = re.findall(r"s_c?branch\w* (\.LBB\w+)", made.assembly)
    back = [one for one in jumps if made.assembly.index(f"\n{one}:") < made.assembly.index(f" {one}\n")]
    assert (len(labels) < 8, len(set(back))) == (True, 1)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_ported_kernel(target: str) -> None:
    data = KERNEL.encode()
    file = CudaFile("kernel.cu", data)
    wanted = {"CU01", "CU02", "CU04", "CU09", "CU14"}
    issues = [issue for rule in rules(Language.CUDA) if rule.id in wanted for issue in rule.issues(file)]
    assert {issue.rule for issue in issues} == wanted - {"CU02"}
    assert all(issue.outcome is Outcome.AUTO for issue in issues)
    compiled(ported(data, issues).decode(), target)


UNSET = """#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include "warp32.h"
#include "warp32_groups.h"
namespace cg = cooperative_groups;
template <typename T>
__device__ __forceinline__ T from_lane(unsigned mask, T value, int lane) {
  return __shfl_sync(mask, value, lane);
}
__device__ int once(int* count, int lane) {
  int old;
  if (lane == 21) old = atomicAdd(count, 5);
  return old;
}
__global__ void direct(int* count, int* out) {
  int lane = threadIdx.x & 31, base;
  if (lane == 21) base = atomicAdd(count, 32);
  out[threadIdx.x] = __shfl_sync(0xffffffff, base, 21) + lane;
}
__global__ void wrapped(int* count, int* out) {
  int lane = threadIdx.x & 31, base;
  if (lane == 21) base = atomicAdd(count, 32);
  base = from_lane(0xffffffff, base, 21);
  out[threadIdx.x] = base + lane;
}
__global__ void returned(int* count, int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffffff, once(count, threadIdx.x & 31), 21);
}
__global__ void grouped(int* count, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int base;
  if (tile.thread_rank() == 21) base = atomicAdd(count, tile.size());
  out[threadIdx.x] = tile.shfl(base, 21);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
def test_a_test_around_an_assignment_is_kept(target: str) -> None:
    """A compiler may not conclude that all lanes take a branch because the variable that it sets has no value else."""
    data = UNSET.encode()
    file = CudaFile("kernel.cu", data)
    wanted = {"CU01", "CU02", "CU14", "CU37"}
    issues = [issue for rule in rules(Language.CUDA) if rule.id in wanted for issue in rule.issues(file)]
    assert all(issue.outcome is Outcome.AUTO for issue in issues)
    assembly = compiled(ported(data, issues).decode(), target).assembly
    kernels = [part for part in assembly.split(".globl") if ".amdhsa_kernel" in part]
    assert len(kernels) == 4
    for kernel in kernels:
        before = kernel[: kernel.index("global_atomic_add")]
        assert re.search(r"v_cmp\w* .*\b21, v\d+", before), kernel[:3000]
