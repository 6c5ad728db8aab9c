"""Cross-lane operations with a named or computed mask.

## What it does

Reports `__shfl_*_sync`, votes, `__reduce_*_sync` and `__syncwarp` whose mask is a macro, a variable, an expression or
a literal for some lanes, and calls helpers that take 32-bit masks.

## Why it matters

HIP rejects 32-bit masks and needs one bit per lane of the wavefront. On a 64-lane wavefront the bits of a warp are
the lower or the upper half, so no constant is right for both.

## Use instead

The helpers of `warp32.h`: bit i of their masks is lane i of the caller's own 32 lanes, as in CUDA. The mask is left
as it is.

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
from rocmend.port.wave.findings import mask_of, narrowed
from rocmend.port.wave.intrinsics import SOURCES, TRIGGERS


@rule(
    "CU02",
    "Cross-lane operation with a 32-bit mask",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=TRIGGERS,
    sources=SOURCES,
    valid=(
        "#define FULL_MASK 0xffffffff\n__device__ float f(float v) {\n  return warp32_shfl_sync(FULL_MASK, v, 0);\n}\n",
        "int f(S s, unsigned m) {\n  return s.__shfl_sync(m, 1, 2);\n}\n",
    ),
    invalid=(
        gated(
            "  return __shfl_sync(FULL_MASK, v, 0);",
            "  return warp32_shfl_sync(FULL_MASK, v, 0);",
            "#define FULL_MASK 0xffffffff\n__device__ float f(float v) {\n",
            "}\n",
        ),
        gated(
            "  v = __shfl_down_sync(0xffffu, v, 8, 16);",
            "  v = warp32_shfl_down_sync(0xffffu, v, 8, 16);",
            "__device__ float f(float v) {\n",
            "  return v;\n}\n",
        ),
        gated(
            "  return __reduce_add_sync(mask, v);",
            "  return warp32_reduce_add_sync(mask, v);",
            "__device__ unsigned f(unsigned mask, unsigned v) {\n",
            "}\n",
        ),
    ),
)
def named_masks(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    return narrowed(
        file,
        lambda site: mask_of(file, site) in {"named", "part"} and site.intrinsic.kind not in {"ballot", "match"},
        "HIP's {name} takes a 64-bit mask, one bit per lane of the wavefront; {helper} takes CUDA's 32-bit mask",
    )
