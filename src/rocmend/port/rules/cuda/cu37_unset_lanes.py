"""Variables set in only some lanes and read in others.

## What it does

Finds local variables without a value that a branch sets in some lanes (`if (lane == leader) base = atomicAdd(…);`)
before a group's shuffle, a collective of CUB or a function that holds a shuffle is passed them, or the function returns
them, and initialises them (`int base{};`).

## Why it matters

For clang, which compiles HIP, passing an uninitialised variable is undefined. It assumes that all lanes take the
branch that sets it and removes the test: every lane adds to the counter instead of one. There is no warning, for
either wavefront size. nvcc does not do this.

## Use instead

`int base = 0;`. The helpers of `warp32.h` and `ptx.h` take such variables; a function of the project around them, or a
member of HIP's cooperative groups, does not.

## Fix safety

Safe: it only initialises a variable that was uninitialised.

## References

- Clang, attribute `maybe_undef`
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.intrinsics import TRIGGERS
from rocmend.port.wave.unset import unset


@rule(
    "CU37",
    "Variable set in only some lanes",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(*TRIGGERS, b"shfl", b"huffle", b"roadcast", b"bcast", b"cooperative_groups", b"arp", b"cub"),
    sources=(
        "https://clang.llvm.org/docs/AttributeReference.html#maybe-undef",
        "https://reviews.llvm.org/D130224",
        "measured: clang 22 for gfx942 and gfx1100 removes the test around atomicAdd at -O1 to -O3",
    ),
    valid=(
        (
            "__device__ int f(int v) {\n  int base;\n  if (v > 2) {\n    base = v;\n  } else {\n    base = 3;\n  }\n"
            "  return base;\n}\n"
        ),
        "__device__ int f(int v) {\n  int base;\n  if (v) base = v;\n  return warp32_shfl(base, 0);\n}\n",
        "__device__ int f(int v) {\n  int base;\n  base = v;\n  return __shfl_sync(~0u, base, 0);\n}\n",
        (
            "__device__ int f(int v) {\n  int base;\n  load(&base);\n  if (v) base = 1;\n"
            "  return __shfl_sync(~0u, base, 0);\n}\n"
        ),
        "__device__ int f(int v) {\n  int base{};\n  if (v) base = v;\n  return broadcast(base, 0);\n}\n",
        (
            "__device__ int f(int v) {\n  for (int i = 0; i < 4; ++i) {\n    int base;\n    base = v + i;\n"
            "    v += __shfl_sync(~0u, base, 0);\n  }\n  return v;\n}\n"
        ),
    ),
    invalid=(
        gated(
            "  float v;",
            "  float v{};",
            "using Sums = cub::BlockReduce<float, 128>;\n__device__ float f(Sums& sums, const float* x, int n) {\n",
            "  if (threadIdx.x < n) v = x[threadIdx.x];\n  return sums.Sum(v, n);\n}\n",
        ),
        gated(
            "  int base;",
            "  int base{};",
            "__device__ int base_of_warp(int* n, int lane) {\n",
            "  if (lane == 0) base = atomicAdd(n, 1);\n  return base;\n}\n",
        ),
        gated(
            "  T first, last;",
            "  T first{}, last;",
            (
                "template <typename T>\n__device__ T from_lane(T v) {\n  return warp32_shfl_sync(~0u, v, 0);\n}\n"
                "template <typename T>\n__device__ T f(const T* x, int lane) {\n"
            ),
            "  last = x[2];\n  if (lane == 0) first = x[0];\n  return from_lane(first) + from_lane(last);\n}\n",
        ),
        gated(
            "  int at;",
            "  int at{};",
            ("namespace cg = cooperative_groups;\n__device__ int f(const cg::thread_block_tile<32>& g, int* n) {\n"),
            "  if (g.thread_rank() == 0) at = atomicAdd(n, 32);\n  return g.shfl(at, 0);\n}\n",
        ),
    ),
)
def unset_lanes(file: CudaFile) -> Iterator[Found]:
    """Yield the declarations."""
    for one in unset(file):
        name = one.declared.name
        text = name.text.decode("utf-8", "replace")
        yield Found(
            name.start,
            name.end,
            f"{text} is set in only some lanes and read in others: clang assumes that all lanes take the branch",
            (Edit(name.end, name.end, b"{}"),),
        )
