"""Kernels as the rules port them, run with 32 and with 64 lanes a wave, against CUDA's warps of 32.

Each kernel is a plain program: its threads are fibers that meet at operations across lanes (``shim/simt.h``). What CUDA
defines comes from a model of its own (``shim/cuda``), what HIP offers from another (``shim/rocm``).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.write import ported
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import rules

HERE = Path(__file__).parent
SUPPORT = Path(__file__).parents[3] / "src" / "rocmend" / "port" / "support"
KERNELS = sorted(HERE.glob("kernels/*.cu"))
RULES = {"CU01", "CU02", "CU03", "CU04", "CU09", "CU10", "CU30", "CU37"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")]


def output(source: bytes, side: str, lanes: int, folder: Path) -> str:
    """Build a program for one side and one width, and return what it prints."""
    file = folder / f"{side}{lanes}.cpp"
    file.write_bytes(source)
    program = folder / f"{side}{lanes}"
    gate = ["-DUSE_ROCM"] if side == "rocm" else []
    paths = [f"-I{HERE / 'shim' / side}", f"-I{SUPPORT}"]
    subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-O0",
            "-w",
            f"-DWAVE={lanes}",
            *gate,
            *paths,
            f"-I{folder}",
            str(file),
            "-o",
            str(program),
        ],
        check=True,
    )
    return subprocess.run([str(program)], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture(scope="module", params=KERNELS, ids=lambda path: path.stem)
def kernel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, str]:
    """A kernel's folder to build in, its CUDA source and what that prints."""
    folder = tmp_path_factory.mktemp(request.param.stem)
    source = request.param.read_bytes()
    return folder, source, output(source, "cuda", 32, folder)


def port(source: bytes) -> bytes:
    file = CudaFile("kernel.cu", source)
    issues = [issue for rule in rules(Language.CUDA) if rule.id in RULES for issue in rule.issues(file)]
    assert all(issue.outcome is Outcome.AUTO for issue in issues)
    return ported(source, issues)


@pytest.mark.parametrize("lanes", [32, 64])
def test_ported_kernel_gives_what_cuda_gives(kernel: tuple[Path, bytes, str], lanes: int) -> None:
    folder, source, expected = kernel
    assert len(expected) > 200
    assert output(port(source), "rocm", lanes, folder) == expected


def test_nvidia_side_of_a_port_gives_what_it_gave(kernel: tuple[Path, bytes, str]) -> None:
    folder, source, expected = kernel
    assert output(port(source), "cuda", 32, folder) == expected


NAIVE = rb"""
#include <cuda_runtime.h>
__global__ void count(const int* in, int* out) {
  unsigned seen = __ballot(in[threadIdx.x] & 1);
  int sum = in[threadIdx.x];
  for (int step = warpSize / 2; step; step /= 2) sum += __shfl(sum, (threadIdx.x ^ step) % warpSize);
  out[threadIdx.x] = __popc(seen) * 1000 + sum;
}
int main() {
  std::vector<int> in(128), out(128);
  for (int i = 0; i < 128; ++i) in[i] = i * i % 11;
  simt::launch(1, {128, 1, 1}, [&] { count(in.data(), out.data()); });
  for (int word : out) std::printf("%d\n", word);
}
"""


def test_unported_kernel_is_wrong_with_64_lanes(tmp_path: Path) -> None:
    """The harness sees what the rules are for: HIP's own functions, which compile, give something else on gfx9."""
    expected = output(NAIVE, "cuda", 32, tmp_path)
    assert output(NAIVE, "rocm", 32, tmp_path) == expected
    assert output(NAIVE, "rocm", 64, tmp_path) != expected
    assert output(port(NAIVE), "rocm", 64, tmp_path) == expected


PARTS = rb"""
#include <hip/hip_runtime.h>
#include <type_traits>
#define __clang__ 1
#define __HIP__ 1
#define HIP_VERSION_MAJOR 7
inline void __ockl_grid_sync() {}
inline bool __ockl_grid_is_valid() { return true; }
#include <hip/hip_cooperative_groups.h>
#include "warp32.h"
#include "warp32_groups.h"
namespace cg = cooperative_groups;
template <typename Group>
void told(const char* name, const Group& part) {
  std::printf("%s %u %u %u %u %u\n", name, threadIdx.x, part.meta_group_rank(), part.meta_group_size(),
              part.thread_rank(), part.size());
}
void parts() {
  const int v = threadIdx.x * threadIdx.x % 11;
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
  told("label", warp32_groups::labeled_partition(warp, v));
  told("small", warp32_groups::labeled_partition(tile, static_cast<unsigned char>(v)));
  told("both", warp32_groups::binary_partition(tile, v > 4));
  cg::coalesced_group same = warp32_groups::binary_partition(warp, v >= 0);
  told("same", same);
  told("bool", warp32_groups::labeled_partition(warp32_groups::coalesced_threads(), v == 3));
}
int main() { simt::launch(1, {64, 1, 1}, parts); }
"""


def parts_of_cuda() -> list[str]:
    """What CUDA's partitions are: numbered by their first threads, or by what a vote gives."""
    lines = []
    values = [thread * thread % 11 for thread in range(64)]
    keys_of: dict[str, tuple[int, Callable[[int], int]]] = {
        "label": (32, lambda v: v),
        "small": (8, lambda v: v),
        "both": (8, lambda v: v > 4),
        "same": (32, lambda v: v >= 0),
        "bool": (32, lambda v: v == 3),
    }
    for name, (size, key) in keys_of.items():
        for thread in range(64):
            group = range(thread // size * size, thread // size * size + size)
            keys = list(dict.fromkeys(key(values[other]) for other in group))
            keys = sorted(keys) if isinstance(keys[0], bool) else keys
            part = [other for other in group if key(values[other]) == key(values[thread])]
            rank = keys.index(key(values[thread]))
            lines.append(f"{name} {thread} {rank} {len(keys)} {part.index(thread)} {len(part)}")
    return lines


@pytest.mark.parametrize("lanes", [32, 64])
def test_parts_of_groups_are_numbered_as_cuda_numbers_them(lanes: int, tmp_path: Path) -> None:
    include = SUPPORT.parents[1] / "codeobject" / "hip" / "include" / "hip" / "hip_cooperative_groups.h"
    (tmp_path / "hip").mkdir()
    shutil.copy(include, tmp_path / "hip")
    got = output(PARTS, "rocm", lanes, tmp_path).splitlines()
    assert sorted(got) == sorted(parts_of_cuda())
