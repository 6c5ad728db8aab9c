"""Ballots, matches and masks of active lanes.

## What it does

Reports `__ballot_sync`, `__ballot`, `__activemask`, `__match_any_sync` and `__match_all_sync`, and calls helpers
whose results are CUDA's: 32 bits, one for each lane of the caller's own 32.

## Why it matters

HIP's return 64 bits. Kept in an `unsigned`, they lose the upper half of a wavefront of 64 lanes; kept in 64 bits,
every count, shift and comparison that comes after them (`__popc`, `__ffs`, `1u << lane`, `== 0xffffffff`) changes
meaning. A count of 32-lane ballots gave 160 on gfx942 where 80 was right, without a warning.

## Use instead

The helpers of `warp32.h`: on a wavefront of 64 lanes they shift the caller's half down. Code that uses the result
does not change.

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
    "CU04",
    "Ballot, match or mask of active lanes",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=TRIGGERS,
    sources=SOURCES,
    valid=("__device__ int f(int v) {\n  return __popc(warp32_ballot_sync(0xffffffff, v));\n}\n",),
    invalid=(
        gated(
            "  unsigned kept = __ballot_sync(0xffffffff, v > 0);",
            "  unsigned kept = warp32_ballot_sync(0xffffffff, v > 0);",
            "__device__ int f(int v, int lane) {\n",
            "  return __popc(kept & ((1u << lane) - 1));\n}\n",
        ),
        gated(
            "  return __ffs(__ballot(v)) + __popc(__activemask());",
            "  return __ffs(warp32_ballot(v)) + __popc(warp32_activemask());",
            "__device__ int f(int v) {\n",
            "}\n",
        ),
        gated(
            "  auto peers = __match_any_sync(__activemask(), key);",
            "  auto peers = warp32_match_any_sync(warp32_activemask(), key);",
            "__device__ void f(int key) {\n",
            "}\n",
        ),
    ),
)
def ballots(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    return narrowed(
        file,
        lambda site: site.intrinsic.kind in {"ballot", "match"},
        "HIP's {name} returns one bit per lane of the wavefront; {helper} returns 32 bits for the caller's warp",
    )
