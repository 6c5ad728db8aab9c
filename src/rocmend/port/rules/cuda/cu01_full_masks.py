"""Cross-lane operations with a full 32-lane mask.

## What it does

Reports `__shfl_*_sync`, `__any_sync`, `__all_sync`, `__reduce_*_sync` and `__syncwarp` whose mask is a literal for
all lanes of a warp (`0xffffffff`, `-1`, `~0u`), and calls 32-lane helpers instead.

## Why it matters

HIP's functions of the same names work on the whole wavefront: 64 lanes on gfx9. They reject a 32-bit mask at compile
time, and simply widening the mask turns a sum of 32 values into a sum of 64.

## Use instead

`warp32_shfl_down_sync(0xffffffff, v, 16)` and so on, from `warp32.h`, which is written into the project.

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
    "CU01",
    "Cross-lane operation with a full 32-lane mask",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=TRIGGERS,
    sources=SOURCES,
    valid=(
        "__global__ void f(float* x) {\n  x[0] = warp32_shfl_sync(0xffffffff, x[0], 0);\n}\n",
        "#ifdef USE_ROCM\n#define S(v) __shfl_xor(v, 1, 32)\n#else\n#define S(v) __shfl_xor_sync(~0, v, 1)\n#endif\n",
        '// __shfl_sync(0xffffffff, v, 0)\nconst char* s = "__shfl_sync(0xffffffff, v, 0)";\n',
    ),
    invalid=(
        gated(
            "  v += __shfl_down_sync(0xffffffff, v, 16);",
            "  v += warp32_shfl_down_sync(0xffffffff, v, 16);",
            "__device__ float f(float v) {\n",
            "  return v;\n}\n",
        ),
        gated(
            "  if (__any_sync(-1, v > 0) && __all_sync(~0u, v < 9)) __syncwarp();",
            "  if (warp32_any_sync(-1, v > 0) && warp32_all_sync(~0u, v < 9)) warp32_syncwarp();",
            "__device__ void f(int v) {\n",
            "}\n",
        ),
        gated(
            "#define XOR(v, m) \\\n  __shfl_xor_sync(uint32_t(-1), v, m)",
            "#define XOR(v, m) \\\n  warp32_shfl_xor_sync(uint32_t(-1), v, m)",
        ),
    ),
)
def full_masks(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    return narrowed(
        file,
        lambda site: mask_of(file, site) == "full" and site.intrinsic.kind not in {"ballot", "match"},
        "HIP's {name} spans the whole wavefront (64 lanes on gfx9); {helper} works on CUDA's 32 lanes",
    )
