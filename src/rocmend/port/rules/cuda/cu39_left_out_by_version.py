"""Cross-lane operations compiled out on ROCm.

## What it does

Reports conditionals on CUDA's versions (`CUDART_VERSION`, `__CUDACC_VER_MAJOR__`, `__CUDA_ARCH__`) where ROCm
compiles a branch without cross-lane operations, while another branch has some.

## Why it matters

On ROCm these versions count as 0, so the branch for the oldest CUDA is compiled. What it omits for GPUs with lockstep
warps (`#define SYNC_WARP()`) is a compiler fence on AMD GPUs: without it, shared-memory accesses may be reordered,
without a warning.

## Use instead

`#if CUDART_VERSION >= 9000 || defined(USE_ROCM)`, then port again.

## Fix safety

Manual. A separate ROCm branch (`#ifdef USE_ROCM`) is not reported.

## References

- CUDA C++ programming guide, independent thread scheduling
- LLVM, memory model for AMDGPU
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.treated import treats_rocm
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.intrinsics import INTRINSICS, TRIGGERS


@rule(
    "CU39",
    "Cross-lane operation compiled out on ROCm",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=TRIGGERS,
    sources=(
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#independent-thread-scheduling",
        "https://llvm.org/docs/AMDGPUUsage.html#memory-model",
    ),
    valid=(
        (
            "#if CUDART_VERSION >= 9000\n#define S(v) __shfl_xor_sync(~0u, v, 1)\n#else\n"
            "#define S(v) __shfl_xor(v, 1)\n#endif\n"
        ),
        "#ifndef USE_ROCM\n#define S() __syncwarp()\n#else\n#define S()\n#endif\n",
        (
            "__device__ int f(int v) {\n#if __CUDA_ARCH__ >= 700\n  return __match_any_sync(~0u, v);\n#else\n"
            "#ifdef USE_ROCM\n  return warp32_ballot_sync(~0u, v);\n#else\n  return __ballot(v);\n#endif\n#endif\n}\n"
        ),
        "#if CUDART_VERSION < 9000\n#define __syncwarp()\n#endif\n",
        "#if CUDART_VERSION >= 9000 && !defined(USE_ROCM)\n#define S() __syncwarp()\n#else\n#define S()\n#endif\n",
        "#if CUDART_VERSION >= 9000\n#define __shfl_up(v, d) __shfl_up_sync(~0u, v, d)\n#endif\n",
    ),
    invalid=(
        Case("#if CUDART_VERSION >= 9000\n#define S() __syncwarp()\n#else\n#define S()\n#endif\n", None),
        Case("__device__ int f(int v) {\n#if CUDART_VERSION >= 9000\n  v = __shfl_sync(~0u, v, 0);\n#endif\n}\n", None),
    ),
)
def left_out_by_version(file: CudaFile) -> Iterator[Found]:
    """Yield the operations, one for each conditional."""
    places = [file.tokens[index].start for index in file.names(*INTRINSICS, shared=False) if not _renames(file, index)]
    seen: set[int] = set()
    for branch in file.branches:
        if branch.rocm is not False or branch.nvidia is False or branch.nvidia is True or branch.group in seen:
            continue
        first = bisect_left(places, branch.start)
        if first == len(places) or places[first] >= branch.end:
            continue
        if treats_rocm(file, branch.group):
            continue
        members = [one for one in file.members(branch.group) if one.rocm is not False]
        if any(bisect_left(places, one.start) < bisect_left(places, one.end) for one in members):
            continue
        if any(_ported(file, one.start, one.end) for one in members):
            continue
        seen.add(branch.group)
        token = file.tokens[file.token_at(places[first])]
        yield Found(
            token.start,
            token.end,
            f"ROCm compiles the branch for the oldest CUDA, without {token.text.decode()}",
            remedy="Enable this branch for ROCm: add `|| defined(USE_ROCM)` to its condition, then port again.",
        )


def _ported(file: CudaFile, start: int, end: int) -> bool:
    """Tell whether a part of a file has operations across lanes as a port writes them."""
    first, last = file.token_at(start), file.token_at(end)
    return any(token.text.startswith(b"warp32_") for token in file.tokens[first : last + 1])


def _renames(file: CudaFile, index: int) -> bool:
    """Tell whether a name stands in a macro that bears such a name itself: its uses are rewritten where they are."""
    number = file.tokens[index].directive
    if number < 0 or file.directives[number].name != b"define":
        return False
    return file.tokens[file.directives[number].first + 2].text in INTRINSICS
