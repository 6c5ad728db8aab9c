"""A loop that waits for another thread.

## What it does

Reports device-code loops, also those made with `goto`, that only poll a value until another thread changes it: spin
locks by `atomicCAS`, `atomicExch` or `cuda::atomic`, flags in memory, also with a limit of time; and loops that only a
lane leaves which took a lock, if the lock is released after the loop. `acquire()` and `wait()` of libcu++ are such
loops. A wait of a block's first thread alone is for another block, or for the rest of its own one.

## Why it matters

Since Volta each lane makes independent progress. The lanes of a wavefront do not: while some of them loop, the others
are stopped, so a lane that waits for another lane of its wavefront waits forever. On gfx9 a wavefront holds two of
CUDA's warps: a lock that only one lane of each warp takes, safe on every NVIDIA GPU, hangs there.

A block that waits for another one hangs if that one is not resident. How many are depends on registers, LDS, the
number of compute units and the second argument of `__launch_bounds__`, which all differ on AMD.

## Use instead

Let one thread of a block wait, with the others at `__syncthreads()`; move the critical section into the loop (`if
(taken) { …; release; done = true; }`); or use atomic operations instead of locks. Blocks that wait for each other: a
cooperative launch (`hipLaunchCooperativeKernel`), which fails where they do not fit, or a grid from
`hipOccupancyMaxActiveBlocksPerMultiprocessor`.

## Fix safety

For a person. Loops that repeat an atomic operation until it succeeds (`do { assumed = old; … } while (assumed !=
old)`) wait for no other thread and are not reported. A file that launches cooperatively or asks for the occupancy has
taken care of blocks that wait: these are a note.

## References

- CUDA C++ programming guide, independent thread scheduling
- LLVM, user guide for AMDGPU: wavefronts run in lockstep
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.waiting import waits

_BLOCKS = "the block's first thread waits for another block: all of them have to be resident at once"
_SEES_TO_IT = (b"LaunchCooperativeKernel", b"MaxActiveBlocks", b"cudaLaunchAttributeCooperative")


@rule(
    "CU31",
    "Loop that waits for another thread",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"atomic", b"volatile", b"semaphore", b"ld.acquire", b"lock", b"ld_acquire", b"__ldcg", b"__ldcv"),
    sources=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#independent-thread-scheduling",),
    valid=(
        (
            "__device__ void f(int* mutex, int* sum) {\n  bool done = false;\n  while (!done) {\n"
            "    if (atomicCAS(mutex, 0, 1) == 0) {\n      *sum += 1;\n      atomicExch(mutex, 0);\n"
            "      done = true;\n    }\n  }\n}\n"
        ),
        (
            "__device__ double f(unsigned long long* at, unsigned long long old, unsigned long long assumed) {\n"
            "  do {\n    assumed = old;\n    old = atomicCAS(at, assumed, assumed + 1);\n"
            "  } while (assumed != old);\n  return 0;\n}\n"
        ),
        (
            "__device__ void f(unsigned* at, unsigned old, unsigned assumed) {\nagain:\n  assumed = old;\n"
            "  old = atomicCAS(at, assumed, assumed + 1);\n  if (assumed != old) goto again;\n}\n"
        ),
        "void host(volatile int* flag) {\n  while (*flag == 0) {}\n}\n",
        (
            "__global__ void f(volatile int* ready, const int* of, double* x, int n) {\n  int j = 0;\n"
            "  while (j < n) {\n    if (ready[of[j]] == 1) {\n      x[threadIdx.x] += x[of[j]];\n"
            "      ready[threadIdx.x] = 1;\n      j++;\n    }\n  }\n}\n"
        ),
    ),
    invalid=(
        Case(
            (
                "__device__ int asked(int* p) {\n  return atomicAdd(p, 0);\n}\n"
                "__global__ void f(int* p) {\n  while (asked(p) != threadIdx.x / 32) {\n  }\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__global__ void f(int* lock, int* n) {\n  if (threadIdx.x == 0) {\n"
                "    while (atomicCAS(lock, 0, 1) != 0) {\n    }\n    n[threadIdx.y] += 1;\n  }\n}\n"
            ),
            None,
        ),
        Case(
            "__device__ void f(int* mutex) {\n  for (;;) {\n    if (atomicCAS(mutex, 0, 1) == 0) break;\n  }\n}\n",
            None,
        ),
        Case(
            "__device__ void f(int* lock) {\n  int s;\n  do {\n"
            '    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(s) : "l"(lock));\n'
            "  } while (s != 3);\n}\n",
            None,
        ),
        Case(
            (
                "__device__ void f(unsigned* flags, int i) {\n  unsigned s;\n  do {\n"
                "    s = *((volatile unsigned*)&flags[i]);\n  } while (s == 0);\n}\n"
            ),
            None,
        ),
        Case(
            "__device__ void f(int* lock) {\nagain:\n  if (atomicCAS(lock, 0, 1) != 0) goto again;\n}\n",
            None,
        ),
        Case(
            (
                "__device__ void f(int* lock) {\nagain:\n  if (atomicExch(lock, 1) == 0) goto taken;\n"
                "  __nanosleep(20);\n  goto again;\ntaken:\n  __threadfence();\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ void f(volatile int* flag) {\n  int seen;\nagain:\n  seen = *flag;\n"
                "  if (seen == 0) {\n    __nanosleep(20);\n    goto again;\n  }\n}\n"
            ),
            None,
        ),
        Case("HOST_DEVICE void lock(int* mutex) {\n  for (; atomicCAS(mutex, 0, 1) != 0;) {\n  }\n}\n", None),
        Case("__device__ void lock(int* mutex) {\n  while (atomicCAS(mutex, 0, 1) != 0) {\n  }\n}\n", None),
        Case("__device__ void lock(int* mutex) {\n  while (atomicExch(mutex, 1))\n    ;\n}\n", None),
        Case("__device__ void f(volatile int* flags, int i) {\n  while (flags[i] == 0);\n}\n", None),
        Case(
            (
                "__global__ void f(volatile int* __restrict__ const last, int* out) {\n  int at;\n  do {\n"
                "    at = last[blockIdx.x];\n  } while (at < 0);\n  out[blockIdx.x] = at;\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int load(const int* at) {\n  const volatile int *v = at;\n  return *v;\n}\n"
                "__global__ void f(int* ready, const int* of, double* x, int n) {\n  int j = threadIdx.x % 32;\n"
                "  double sum = 0;\n  while (j < n) {\n    int at = of[j];\n    if (load(&ready[at]) == 1) {\n"
                "      sum += x[at];\n      j += 32;\n    }\n  }\n  x[n] = sum;\n}\n"
            ),
            None,
        ),
        Case(
            "__global__ void f() {\n  __shared__ volatile int flag;\n  if (threadIdx.x == 0) {\n"
            "    while (flag == 0);\n  } else {\n    flag = 1;\n  }\n}\n",
            None,
        ),
        Case(
            "__global__ void f(volatile int* done) {\n  if (threadIdx.x == 0) {\n"
            "    while (done[blockIdx.x] == 0);\n  } else {\n    done[blockIdx.x] = 1;\n  }\n}\n",
            None,
        ),
        Case(
            (
                "__global__ void f(volatile int* flags) {\n  if (threadIdx.x == 0) {\n"
                "    while (flags[0] == 0);\n  }\n}\n"
            ),
            None,
        ),
    ),
)
def waiting_lanes(file: CudaFile) -> Iterator[Found]:
    """Yield the loops."""
    for wait in waits(file):
        if wait.own_block:
            yield Found(
                wait.start,
                wait.end,
                "the block's first thread waits for its own block, which makes no progress in its wavefront meanwhile",
                remedy="Use __syncthreads(), or set the flag before the branch.",
            )
            continue
        if wait.one_of_block and _resident(file):
            yield Found(wait.start, wait.end, _BLOCKS, outcome=Outcome.NOTE, severity=Severity.ADVICE)
            continue
        if wait.one_of_block:
            yield Found(
                wait.start,
                wait.end,
                f"{_BLOCKS}. How many are depends on the GPU, and on __launch_bounds__",
                remedy="Launch it with hipLaunchCooperativeKernel, or size the grid by the occupancy on this GPU.",
            )
            continue
        yield Found(
            wait.start,
            wait.end,
            "this loop waits for another thread, which makes no progress while a lane of its wavefront spins",
            remedy=("Let one thread of the block wait, move the critical section into the loop, or use atomics."),
        )


def _resident(file: CudaFile) -> bool:
    """Tell whether a file sees to it that the blocks of a grid are resident at once."""
    return any(name in token.text for token in file.tokens for name in _SEES_TO_IT)  # a comment sees to nothing
