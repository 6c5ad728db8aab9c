"""Lanes of one warp that reach different calls.

## What it does

Reports branches with operations across lanes, or with `__syncthreads()`, on both sides (or on one side that leaves,
and after it), where the lanes of a warp may differ in the condition and the masks may name lanes of the other side.
Intrinsics, inline PTX, members of cooperative groups and functions that hold one of them are looked at, in lambdas too.

## Why it matters

Since Volta, lanes in different branches can take part in the same shuffle, vote or `__syncwarp`. The lanes of a
wavefront cannot: each branch is run by itself with the other lanes masked off, so a shuffle reads inactive lanes, and
a warp barrier orders nothing. There is no hang and no warning: the result is wrong. Two warps in different branches
that meet at different `__syncthreads()` are one wavefront of 64 lanes on gfx9, which executes both.

## Use instead

Move the operation out of the branches: set the value first, then let all lanes make one call.

## Fix safety

Manual. A condition that is shown to be the same in all lanes of a warp (blocks, arguments of a kernel,
`threadIdx.x / 32`, LDS, votes and broadcasts, and variables of these that all lanes change alike) is not reported, nor
are masks that `__activemask()` or a ballot gave within the branch. What a macro hides, or a launch of the file does not
show (`dim3` of unknown parts), is reported; macros and constants of the project's own headers are known. An operation
in one branch alone is not reported: CUDA defines it only where all lanes that its mask names take that branch or have
ended.

## References

- CUDA C++ programming guide, independent thread scheduling
- PTX, shfl.sync: on sm_6x and below all lanes of the mask run the same instruction in convergence
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.core.units import count_text
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.convergence import splits
from rocmend.port.wave.intrinsics import TRIGGERS


@rule(
    "CU30",
    "Lanes of one warp meet at different calls",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*TRIGGERS, b"__syncthreads", b"asm", b"cooperative_groups", b"cg::"),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#independent-thread-scheduling",
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#data-movement-and-conversion-instructions-shfl-sync",
    ),
    valid=(
        (
            "__global__ void f(int* x, int n) {\n  if (n > 3) {\n    __syncthreads();\n"
            "  } else {\n    __syncthreads();\n"
            "  }\n  if (threadIdx.x > 3) return;\n  __syncthreads();\n}\n"
        ),
        (
            "__device__ int f(int v) {\n  if (threadIdx.x / 32 == 0) {\n"
            "    v = __shfl_sync(~0u, v, 0);\n  } else {\n    v = __shfl_sync(~0u, v, 1);\n  }\n"
            "  return v;\n}\n"
        ),
        (
            "__device__ int f(int v) {\n  if (v > 3) v = __shfl_sync(__activemask(), v, 0);\n"
            "  else v = __shfl_sync(__activemask(), v, 1);\n  return v;\n}\n"
        ),
        (
            "constexpr int kThreads = 128;\n__global__ void f(int* x) {\n  if (threadIdx.x < kThreads) {\n"
            "    x[0] = 1;\n    __syncthreads();\n  } else {\n    __syncthreads();\n  }\n"
            "  if (threadIdx.x / 64 == 1) __syncthreads(); else __syncthreads();\n}\n"
        ),
        "__device__ int f(int v, int lane) {\n  if (lane < 16) v = __shfl_sync(0xffff, v, 0);\n  return v;\n}\n",
    ),
    invalid=(
        Case(
            (
                "__global__ void f(int* x, int v) {\n  if (x[threadIdx.x] > 2) {\n    v++;\n  } else {\n"
                "    __syncwarp();\n    return;\n  }\n  __syncwarp();\n}\n"
            ),
            None,
        ),
        Case(
            (
                "struct Op {\n  __device__ int operator()(int v) const {\n"
                "    return v & 1 ? __shfl_sync(~0u, v, 0) : __shfl_sync(~0u, v, 1);\n  }\n};\n"
            ),
            None,
        ),
        Case(
            (
                "#define SUM(v) \\\n  if (v & 1) v += __shfl_xor_sync(~0u, v, 2); \\\n"
                "  else v += __shfl_xor_sync(~0u, v, 4);\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int f(int v, int lane) {\n  unsigned m = __activemask();\n"
                "  if (lane & 1) v = __shfl_sync(m, v, 0);\n  else v = __shfl_sync(m, v, 1);\n  return v;\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__global__ void f(int* x) {\n  auto g = [&](int v) {\n    if (v) v = __shfl_sync(~0u, v, 0);\n"
                "    else v = __shfl_sync(~0u, v, 1);\n    return v;\n  };\n  x[0] = g(x[1]);\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int f(int v) {\n  if (v > 2) goto other;\n  return __shfl_sync(~0u, v, 0);\n"
                "other:\n  return __shfl_sync(~0u, v, 1);\n}\n"
            ),
            None,
        ),
        Case(
            (
                '__device__ void f(int v) {\n  if (v) asm volatile("bar.warp.sync 0xffffffff;");\n'
                '  else asm volatile("bar.warp.sync 0xffffffff;");\n}\n'
            ),
            None,
        ),
        Case(
            (
                "namespace cg = cooperative_groups;\n__device__ int f(cg::thread_block_tile<32> tile, int v) {\n"
                "  if (v) return tile.shfl(v, 0);\n  return tile.shfl(v, 1);\n}\n"
            ),
            None,
        ),
        Case("__device__ int f(int v) {\n  return v ? __shfl_sync(~0u, v, 0) : __shfl_sync(~0u, v, 1);\n}\n", None),
        Case(
            (
                "__device__ int f(int v) {\n  if (v > 9) goto out;\n  v++;\n"
                "out: if (v & 1) v = __shfl_sync(~0u, v, 0); else v = __shfl_sync(~0u, v, 1);\n  return v;\n}\n"
            ),
            None,
        ),
        Case(
            "__global__ void f(int* x) {\n  if (threadIdx.x < 32) {\n    x[0] = 1;\n    __syncthreads();\n"
            "  } else {\n    __syncthreads();\n  }\n}\n",
            None,
        ),
        Case(
            (
                "__device__ int f(int v, int lane) {\n  if (lane < 16) {\n    v = __shfl_sync(~0u, v, 0);\n"
                "  } else {\n    v = __shfl_sync(~0u, v, 1);\n  }\n  return v;\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int f(int v) {\n  if (v == 0) {\n    __syncwarp();\n    return 0;\n  }\n"
                "  __syncwarp();\n  return v;\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int sum(int v) {\n  return __reduce_add_sync(~0u, v);\n}\n"
                "__global__ void f(int* x) {\n  int t = threadIdx.x;\n  x[t] = 0;\n"
                "  if (x[t] > 1) x[t] = sum(1); else x[t] = sum(2);\n}\n"
            ),
            None,
        ),
    ),
)
def meeting_in_branches(file: CudaFile) -> Iterator[Found]:
    """Yield the branches."""
    for split in splits(file):
        here = file.line_of(split.start)
        where = _where(split.one - here, split.other - here)  # a port moves the lines themselves
        if split.barrier:
            yield Found(
                split.start,
                split.end,
                f"warps diverge here and reach two different barriers, {where}",
                remedy=("Use one __syncthreads() after the branches: a 64-lane wavefront would execute both."),
            )
            continue
        yield Found(
            split.start,
            split.end,
            f"lanes that diverge here may meet at two different calls, {where}; this does not work on AMD",
            remedy=(
                "Set the value in the branches and make one call after them, or use masks of each branch's own lanes."
            ),
        )


def _where(one: int, other: int) -> str:
    """Say where two calls stand, by the lines from a branch to them."""
    if one == other == 0:
        return "both on this line"
    if min(one, other) > 0:
        return f"{one} and {other} lines below"
    return f"{_lines(one)} and {_lines(other)}"


def _lines(count: int) -> str:
    if count == 0:
        return "on this line"
    return f"{count_text(abs(count), 'line')} {'below' if count > 0 else 'above'}"
