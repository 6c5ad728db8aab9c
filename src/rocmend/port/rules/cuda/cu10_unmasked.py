"""Cross-lane operations without a mask, as in CUDA 8.

## What it does

Reports `__shfl`, `__shfl_up`, `__shfl_down`, `__shfl_xor`, `__any` and `__all`, and calls 32-lane helpers instead.

## Why it matters

HIP has functions of these names, so the code compiles unchanged. They are wavefront-wide: on gfx9 a shuffle down
reads past the end of CUDA's warp, and a vote counts the lanes of two warps.

## Use instead

The helpers of `warp32.h`, whose default width is 32.

## Fix safety

Safe. A helper does within the 32 lanes of the caller what CUDA defines for a warp, on wavefronts of 32 and of 64
lanes, whatever the other 32 lanes do; types and widths stay as they were. Where lanes of one warp meet at different
calls, CU30 reports it.

## References

- HIP C++ language extensions, "Warp cross-lane functions"
- CUDA C++ programming guide, "Warp vote functions" and "Warp shuffle functions"
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.findings import narrowed
from rocmend.port.wave.intrinsics import SOURCES, TRIGGERS


@rule(
    "CU10",
    "Shuffle or vote without a mask",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=TRIGGERS,
    sources=SOURCES,
    valid=(
        "__device__ float f(float v) {\n  return warp32_shfl_down(v, 16);\n}\n",
        "#if defined(USE_ROCM)\nint f(int v) {\n  return __shfl_xor(v, 1, 32);\n}\n#endif\n",
    ),
    invalid=(
        gated(
            "__device__ float4 __shfl_down(float4 v, int d) {",
            "__device__ float4 warp32_shfl_down(float4 v, int d) {",
            "",
            "  return v;\n}\n",
        ),
        gated(
            "  v += __shfl_down(v, 16);",
            "  v += warp32_shfl_down(v, 16);",
            "__device__ float f(float v) {\n",
            "  return v;\n}\n",
        ),
        gated(
            "  return __any(v) ? __shfl_xor(v, 1, 8) : 0;",
            "  return warp32_any(v) ? warp32_shfl_xor(v, 1, 8) : 0;",
            "__device__ int f(int v) {\n",
            "}\n",
        ),
    ),
)
def unmasked(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    return narrowed(
        file,
        lambda site: not site.intrinsic.masked and site.intrinsic.kind not in {"ballot", "match"},
        "HIP's {name} spans the whole wavefront (64 lanes on gfx9); {helper} works on CUDA's 32 lanes",
    )
