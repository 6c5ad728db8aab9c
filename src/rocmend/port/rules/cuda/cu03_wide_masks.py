"""Cross-lane operations with a 64-bit mask.

## What it does

Reports cross-lane operations whose mask is a 64-bit literal (`0xffffffffull`, `~0ull`), and calls helpers that take
CUDA's 32-bit masks.

## Why it matters

`0xffffffffull` compiles with HIP and names the lower half of a wavefront of 64 lanes: the upper half calls with a
mask that does not name it, which HIP leaves undefined. `~0ull` makes 64-lane operations of 32-lane ones. No compiler
warns.

## Use instead

The helpers of `warp32.h`. As in CUDA, the mask's lower 32 bits count, one for each lane of the caller's own 32.

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
    "CU03",
    "Cross-lane operation with a 64-bit mask",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=TRIGGERS,
    sources=SOURCES,
    valid=("__device__ float f(float v) {\n  return warp32_shfl_sync(0xffffffffull, v, 0);\n}\n",),
    invalid=(
        gated(
            "  return __shfl_sync(0xffffffffull, v, 0);",
            "  return warp32_shfl_sync(0xffffffffull, v, 0);",
            "__device__ float f(float v) {\n",
            "}\n",
        ),
        gated(
            "  return __any_sync(~0ull, v);",
            "  return warp32_any_sync(~0ull, v);",
            "__device__ int f(int v) {\n",
            "}\n",
        ),
    ),
)
def wide_masks(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    return narrowed(
        file,
        lambda site: mask_of(file, site) == "wide" and site.intrinsic.kind not in {"ballot", "match"},
        "CUDA reads the lower 32 bits of this mask, HIP all 64; {helper} behaves like CUDA's {name}",
    )
