"""Barriers for part of a block.

## What it does

Reports `__barrier_sync`, `__barrier_sync_count`, `__named_barrier`-like calls, and `cuda::barrier` and
`cuda::pipeline` of a block.

## Why it matters

AMD GPUs before gfx12.5 have one barrier for the whole workgroup. A barrier for some of its wavefronts has no
counterpart: `__syncthreads()` instead waits for wavefronts that never reach it.

## Use instead

Split the parts into separate blocks, or let all threads of the block reach `__syncthreads()`.

## Fix safety

For a person.

## References

- PTX, barrier
- LLVM, user guide for AMDGPU, barriers
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "CU34",
    "Barrier for part of a block",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"__barrier_sync", b"cuda::barrier", b"cuda::pipeline", b"cuda/barrier", b"cuda/pipeline"),
    sources=(
        "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#parallel-synchronization-and-communication-instructions-bar",
    ),
    valid=("__device__ void f() {\n  __syncthreads();\n}\n",),
    invalid=(
        Case("__device__ void f() {\n  __barrier_sync_count(1, 64);\n}\n", None),
        Case("__device__ void f() {\n  __shared__ cuda::barrier<cuda::thread_scope_block> bar;\n}\n", None),
    ),
)
def named_barriers(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    for index in file.names(b"__barrier_sync", b"__barrier_sync_count", b"barrier", b"pipeline"):
        token = file.tokens[index]
        owner = file.tokens[index - 2].text if index >= 2 and file.tokens[index - 1].text == b"::" else b""
        if token.text in (b"barrier", b"pipeline") and owner != b"cuda":
            continue
        yield Found(
            token.start,
            token.end,
            f"AMD GPUs have one barrier per workgroup and no equivalent of {token.text.decode()}",
            remedy="Split the parts into separate blocks, or let all threads reach __syncthreads().",
        )
