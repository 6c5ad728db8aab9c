"""Warp-synchronous code without a barrier.

## What it does

Reports shared arrays that lanes of a warp change and read from statement to statement (`s[t] += s[t + 16]; s[t] +=
s[t + 8];`, also `if (s[t] > s[t + 16]) { … }`, or one such statement in a loop over distances) without `__syncwarp()`
between them on ROCm: one for CUDA alone (`#if !defined(USE_ROCM)`) is none. It notes those whose array is `volatile`.

## Why it matters

Such code relies on the lanes of a warp running in lockstep. A wavefront does run so; a compiler may still keep values
in registers or reorder the accesses, and does. With `volatile` the order is kept: then the last 32 threads are in one
wavefront of either size, and the steps are right.

## Use instead

`__syncwarp()` between the steps (CUDA wants it since Volta), or a shuffle.

## Fix safety

Manual without `volatile`; with it, no change is needed.

## References

- CUDA C++ programming guide, independent thread scheduling
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.lockstep import steps


@rule(
    "CU32",
    "Warp-synchronous code without a barrier",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"+ 16", b"+16", b"+ 8", b"+8", b">>= 1", b"/= 2", b">>=1", b"/=2", b">> 1", b">>1", b"/ 2"),
    sources=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#independent-thread-scheduling",),
    valid=(
        (
            "__global__ void f(float* x) {\n  __shared__ float s[64];\n  int t = threadIdx.x;\n"
            "  for (int o = 16; o > 0; o >>= 1) {\n    if (t < o) s[t] += s[t + o];\n    __syncthreads();\n  }\n}\n"
        ),
        "__device__ void f(float* sums, int n) {\n  for (int o = 4; o > 0; o >>= 1) sums[o] += sums[o + n];\n}\n",
        "__device__ void f(float* s, int t) {\n  s[t] += s[t + 16];\n  __syncthreads();\n  s[t] += s[t + 8];\n}\n",
    ),
    invalid=(
        Case(
            (
                "__global__ void f(float* x) {\n  __shared__ float s[64];\n  int t = threadIdx.x;\n"
                "  for (int o = 16; o > 0; o >>= 1) s[t] += s[t + o];\n  x[t] = s[0];\n}\n"
            ),
            None,
        ),
        Case("__device__ void f(float* s, int t) {\n  s[t] += s[t + 16];\n  s[t] += s[t + 8];\n}\n", None),
        Case("__device__ void f(volatile float* s, int t) {\n  s[t] += s[t + 16];\n  s[t] += s[t + 8];\n}\n", None),
    ),
)
def unsynchronised_warps(file: CudaFile) -> Iterator[Found]:
    """Yield the first two steps of each."""
    for step in steps(file):
        if step.volatile:
            yield Found(
                step.start,
                step.end,
                f"{step.name} is volatile, which keeps these steps in order within a wavefront",
                outcome=Outcome.NOTE,
                severity=Severity.INFO,
            )
            continue
        yield Found(
            step.start,
            step.end,
            f"lanes read what others wrote to {step.name} in the previous statement, without a warp barrier",
            remedy="Put __syncwarp() between the steps, on ROCm too, or declare the array volatile.",
        )
