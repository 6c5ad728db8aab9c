"""ROCm-only code with a warp size other than 32.

## What it does

Reports files in which code that only ROCm compiles sets a warp size other than 32 (64, `warpSize`,
`__AMDGCN_WAVEFRONT_SIZE`) or uses HIP's wavefront-wide operations, while code that both sides compile has cross-lane
operations. Also files that count lanes of 32 and use functions or constants of such a file that they include.

## Why it matters

Such a file was ported by hand with another convention. 32-lane operations are wrong in loops that start at 64/2, and
wavefront-wide operations are wrong with 32-lane arithmetic: neither can be rewritten without the other. So no
cross-lane operation in the file is rewritten.

## Use instead

Either 32 lanes everywhere (remove the other size from the code for ROCm, then port again: the operations become
32-lane helpers), or the wavefront's size everywhere, in the launches too.

## Fix safety

For a person. Constants of 32 (`#define WARP_SIZE 32`) are right as they are and are not reported.

## References

- HIP porting guide, warp size
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.intrinsics import TRIGGERS
from rocmend.port.wave.sites import wave


@rule(
    "CU07",
    "ROCm code with a warp size other than 32",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*TRIGGERS, b"USE_ROCM", b"__HIP", b"__AMDGCN", b"USE_HIP"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "https://github.com/vllm-project/vllm/blob/main/csrc/cuda_compat.h",
    ),
    valid=(
        "#ifdef USE_ROCM\n__device__ int f(int v) {\n  return __shfl_xor(v, 32);\n}\n#endif\n",
        (
            "#define WARP_SIZE 32\n__device__ float f(float v) {\n"
            "  return warp32_shfl_xor_sync(0xffffffff, v, WARP_SIZE / 2);\n}\n"
        ),
        (
            "#ifdef USE_ROCM\n#define WARP_SIZE 32\n#else\n#define WARP_SIZE 32\n#endif\n"
            "__device__ float f(float v) {\n  return __shfl_xor_sync(~0u, v, 1);\n}\n"
        ),
    ),
    invalid=(
        Case(
            "#ifndef USE_ROCM\n#define WARP_THREADS CUB_WARP_THREADS(0)\n#else\n"
            "#define WARP_THREADS HIPCUB_WARP_THREADS\n#endif\n",
            None,
        ),
        Case("#ifdef USE_ROCM\n#define SUM(v) __shfl_xor(v, 32)\n#else\n#define SUM(v) v\n#endif\n", None),
        Case(
            (
                "#ifdef USE_ROCM\n#define WARP_SIZE 64\n#else\n#define WARP_SIZE 32\n#endif\n"
                "__device__ float f(float v) {\n  return __shfl_xor_sync(~0u, v, WARP_SIZE / 2);\n}\n"
            ),
            None,
        ),
        Case(
            (
                "#ifndef USE_ROCM\nconstexpr int kWarpSize = 32;\n#else\n"
                "constexpr int kWarpSize = warpSize;\n#endif\n__device__ int f(int v) {\n"
                "  return __any_sync(~0u, v);\n}\n"
            ),
            None,
        ),
    ),
)
def other_widths(file: CudaFile) -> Iterator[Found]:
    """Yield the first place where the width is another."""
    found = wave(file)
    if found.other_width is None:
        return
    start, end, name = found.other_width
    if not found.sites:
        index = file.token_at(start)
        if file.tokens[index].directive >= 0 or file.tokens[min(index + 1, len(file.tokens) - 1)].text in (b"=", b"{"):
            yield Found(
                start,
                end,
                f"{name} sets a warp size other than 32 for every file that includes this",
                remedy=("Use 32 lanes in the ROCm code too, or make all code that uses it wavefront-wide."),
            )
        return
    names = sorted({file.tokens[site.at].text.decode("utf-8", "replace") for site in found.sites})
    shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
    yield Found(
        start,
        end,
        f"{name} sets a warp size other than 32, and shared code has cross-lane operations ({shown})",
        remedy=("Use 32 lanes in the ROCm code too and port again, or make the whole file wavefront-wide."),
    )
