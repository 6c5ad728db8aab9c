"""A count of 32 bits of a ballot that has 64 on ROCm.

## What it does

Reports `__popc`, `__ffs`, `__clz` and `__brev` of a ballot that a library makes: `WARP_BALLOT`, `WARP_ACTIVE_MASK`,
and `ballot` of a coalesced group.

## Why it matters

These ballots have a bit for each lane of the wavefront. `__popc` takes 32 bits: on gfx9 the lanes from 32 on are
dropped without a warning.

## Use instead

`__popcll`, `__ffsll`, `__clzll`, `__brevll` where all of the code around works on whole wavefronts; a ballot of 32
lanes (`__ballot_sync`, which is ported) where it works on 32. Ballots that CU04 rewrites have 32 bits and need
nothing.

## Fix safety

For a person: what the count is compared with, and where it is stored, decides.

## References

- CUDA C++ programming guide, integer intrinsics
- PyTorch, ATen/cuda/DeviceUtils.cuh
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_COUNTS = (b"__popc", b"__ffs", b"__clz", b"__brev")
_BALLOTS = frozenset((b"WARP_BALLOT", b"WARP_ACTIVE_MASK"))


@rule(
    "CU05",
    "Count of 32 bits of a ballot of 64",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"WARP_BALLOT", b"WARP_ACTIVE_MASK", b"coalesced_"),
    sources=(
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/cuda/DeviceUtils.cuh",
        "measured: popc of a 32-lane ballot gave 160 on gfx942 where 80 was right",
    ),
    valid=(
        "__device__ int f(int v) {\n  return __popc(__ballot_sync(0xffffffff, v));\n}\n",
        "__device__ int f(int v) {\n  return __popcll(WARP_BALLOT(v));\n}\n",
    ),
    invalid=(
        Case("__device__ int f(int v) {\n  return __popc(WARP_BALLOT(v));\n}\n", None),
        Case(
            (
                "__device__ int f(int v) {\n  auto group = cooperative_groups::coalesced_threads();\n"
                "  return __ffs(group.ballot(v));\n}\n"
            ),
            None,
        ),
    ),
)
def counts_of_wide_ballots(file: CudaFile) -> Iterator[Found]:
    """Yield the counts."""
    groups = any(name.startswith(b"coalesced_") for name in file.all_names)
    for call in file.calls(*_COUNTS):
        inside = file.tokens[call.opened + 1 : call.closed]
        names = {token.text for token in inside}
        member = groups and any(
            token.text == b"ballot" and before.text in {b".", b"->"} for before, token in pairwise(inside)
        )
        if names & _BALLOTS or member:
            name = call.name.text.decode()
            yield Found(
                call.start,
                call.end,
                f"{name} counts 32 bits of a ballot that has one for each lane of a wavefront on ROCm",
                remedy=f"Use {name}ll if the code works on whole wavefronts, or a ballot of 32 lanes if it does not.",
            )
