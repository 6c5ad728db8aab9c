"""`__nanosleep`.

## What it does

Replaces `__nanosleep` with a helper.

## Why it matters

HIP has no such function. AMD GPUs sleep for multiples of 64 cycles (`s_sleep`), with a constant.

## Use instead

`hip_ptx::nanosleep(ns)` from `ptx.h`, which sleeps in steps of about half a microsecond.

## Fix safety

Safe: CUDA's sleep time is a hint too, from zero to twice the time. A loop that waits for another thread is
reported by CU31.

## References

- CUDA C++ programming guide, `__nanosleep`
- LLVM, user guide for AMDGPU, `llvm.amdgcn.s.sleep`
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Found, rule
from rocmend.port.wave.cases import gated


@rule(
    "CU17",
    "__nanosleep",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"__nanosleep",),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#nanosleep-function",
        "https://llvm.org/docs/AMDGPUUsage.html",
    ),
    valid=("__device__ void f() {\n  hip_ptx::nanosleep(100);\n}\n",),
    invalid=(gated("  __nanosleep(100);", "  hip_ptx::nanosleep(100);", "__device__ void f() {\n", "}\n"),),
)
def nanosleep(file: CudaFile) -> Iterator[Found]:
    """Yield the calls."""
    for call in file.calls(b"__nanosleep"):
        edit = Edit(call.name.start, call.name.end, b"hip_ptx::nanosleep")
        yield Found(call.start, call.end, "HIP has no __nanosleep", (edit,), needs=("ptx", "warp32"))
