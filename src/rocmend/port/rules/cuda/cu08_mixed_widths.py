"""32-lane warps mixed with a library's wavefront-wide operations.

## What it does

Reports names of libraries that mean the whole wavefront on ROCm (`C10_WARP_SIZE`, `WARP_SHFL`, `WARP_BALLOT`,
`at::cuda::warp_size()`, `cuda_utils::WarpReduceSum` …) in files that also use 32: in cross-lane operations,
`threadIdx.x % 32`, `& 31`, `>> 5`, or a 32 anywhere. `warp_size()` and `WarpReduceSum` are also reported where
nothing else in the file shows which lanes are meant. `WARP_SYNC()`, which does nothing on ROCm, becomes a fence.

## Why it matters

On 32-lane wavefronts the two agree. On gfx9 part of the file uses 64 lanes and part 32. A change of this kind
(`threadIdx.x & 0x1f` for a lane that shuffles used) broke mamba's backward pass on gfx9 for seven months, with no
warning and no failure on RDNA. A launch of `warp_size()` threads does not fit a kernel of another file that uses 32;
PyTorch's `BlockReduceSum` gives 0 in a block of 32 threads there.

## Use instead

One of them: 32 everywhere with the helpers of `warp32.h` (`WARP_SHFL_DOWN` is `warp32_shfl_down_sync`), or the
library's size in the arithmetic too.

## Fix safety

Manual, except for the fence, which is safe on any wavefront. A file that uses only the library's names, or only 32,
is not reported.

## References

- HIP porting guide, warp size. mamba, commit d49d7c9
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.widths import WAVE_WIDE, keeps_to_32, undecided, wave_wide


@rule(
    "CU08",
    "32-lane and wavefront-wide code in one file",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*WAVE_WIDE, b"WARP_SYNC"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "https://github.com/state-spaces/mamba/commit/d49d7c9",
    ),
    valid=(
        "__device__ int f() {\n  return threadIdx.x % C10_WARP_SIZE;\n}\n",
        "__device__ int f() {\n  return threadIdx.x % 32;\n}\n",
    ),
    invalid=(
        gated("  WARP_SYNC();", "  warp32_syncwarp();", "__device__ void f() {\n", "}\n"),
        Case("void f(float* x) {\n  dim3 block(at::cuda::warp_size(), 4);\n  k<<<1, block>>>(x);\n}\n", None),
        Case("__device__ float f(float v) {\n  return at::native::cuda_utils::WarpReduceSum(v);\n}\n", None),
        Case(
            (
                "__device__ float f(float v) {\n  return WARP_SHFL_DOWN(v, 1, C10_WARP_SIZE);\n}\n"
                "void g(float* x) {\n  k<<<1, 32>>>(x);\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ float f(float v) {\n  unsigned lane = threadIdx.x & 0x1f;\n"
                "  return WARP_SHFL_DOWN(v, lane);\n}\n"
            ),
            None,
        ),
        Case(
            (
                "__device__ int f(int v) {\n  __shared__ int sums[C10_WARP_SIZE];\n"
                "  sums[threadIdx.x / 32] = v;\n  return sums[0];\n}\n"
            ),
            None,
        ),
    ),
)
def mixed_widths(file: CudaFile) -> Iterator[Found]:
    """Yield the names that mean the whole wavefront, and the barrier that PyTorch leaves out on ROCm."""
    for call in file.calls(b"WARP_SYNC"):
        own = any(one.name.text == b"WARP_SYNC" for one in file.functions) or b"WARP_SYNC" in file.macros
        if not own and call.qualifier in (b"", b"::"):
            edit = Edit(call.name.start, call.name.end, b"warp32_syncwarp")
            what = "PyTorch's WARP_SYNC is a no-op on ROCm: the compiler may move memory accesses across it"
            yield Found(call.start, call.end, what, (edit,), Outcome.AUTO, needs=("warp32",))
    wide = list(wave_wide(file))
    if not wide:
        return
    mixed = keeps_to_32(file)
    if not mixed and not undecided(file):
        return
    why = "other code in the file uses 32 lanes" if mixed else "the file does not show which lanes are meant"
    for index in wide:
        token = file.tokens[index]
        yield Found(
            token.start,
            token.end,
            f"{token.text.decode()} is {WAVE_WIDE[token.text]}, and {why}",
            remedy="Use 32 lanes everywhere (helpers of warp32.h), or this width in the whole file.",
        )
