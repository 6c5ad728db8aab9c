"""A 64-bit ballot on ROCm, truncated to 32 bits.

## What it does

Reports ballots that PyTorch makes (`WARP_BALLOT`, `WARP_ACTIVE_MASK`) where they are not used as 64 bits: counted by
`__popc`, `__ffs`, `__clz` or `__brev`, kept in a variable of 32 bits, compared or shifted.

## Why it matters

These ballots have a bit for each lane of the wavefront. Using only 32 bits drops lanes 32 to 63 on gfx9, without a
warning.

## Use instead

64 bits and `__popcll`, `__ffsll`, `__clzll`, `__brevll` where all of the code around works on whole wavefronts; a
ballot of 32 lanes (`__ballot_sync`, which is ported) where it works on 32. Ballots that CU04 and CU14 rewrite have 32
bits and need nothing.

## Fix safety

Manual: it depends on what the count is compared with and where it is stored. A ballot that goes into a variable of
64 bits or straight into one of the counts of 64 bits is not reported.

## References

- CUDA C++ programming guide, integer intrinsics
- PyTorch, ATen/cuda/DeviceUtils.cuh
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.structure import Call
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.tokens import text_at

_BALLOTS = (b"WARP_BALLOT", b"WARP_ACTIVE_MASK")
_WIDE_COUNTS = frozenset((b"__popcll", b"__ffsll", b"__clzll", b"__brevll"))
_WIDE_TYPES = frozenset((b"uint64_t", b"int64_t", b"size_t", b"lane_mask"))


@rule(
    "CU05",
    "64-bit ballot truncated to 32 bits",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=_BALLOTS,
    sources=(
        "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/cuda/DeviceUtils.cuh",
        "measured: popc of a 32-lane ballot gave 160 on gfx942 where 80 was right",
    ),
    valid=(
        "__device__ int f(int v) {\n  return __popc(__ballot_sync(0xffffffff, v));\n}\n",
        "__device__ int f(int v) {\n  return __popcll(WARP_BALLOT(v));\n}\n",
        "__device__ int f(int v) {\n  const unsigned long long m = WARP_BALLOT(v);\n  return __ffsll(m);\n}\n",
    ),
    invalid=(
        Case("__device__ int f(int v) {\n  return __popc(WARP_BALLOT(v));\n}\n", None),
        Case("__device__ int f(int v) {\n  unsigned m = WARP_BALLOT(v);\n  return m;\n}\n", None),
        Case("__device__ int f() {\n  return WARP_ACTIVE_MASK() == 0xffffffff;\n}\n", None),
    ),
)
def halves_of_wide_ballots(file: CudaFile) -> Iterator[Found]:
    """Yield the ballots."""
    for call in file.calls(*_BALLOTS):
        if call.name.text in file.macros or _whole(file, call):
            continue
        yield Found(
            call.start,
            call.end,
            f"{call.name.text.decode()} has one bit per lane of the wavefront on ROCm, but only 32 bits are used",
            remedy="Use 64 bits if the code works on whole wavefronts, otherwise a 32-lane ballot.",
        )


def _whole(file: CudaFile, call: Call) -> bool:
    """Tell whether all 64 bits are taken: by a count of 64 bits, or into a variable of 64 bits."""
    before = [text_at(file, call.at - back) for back in (1, 2)]
    if before[0] == b"(" and before[1] in _WIDE_COUNTS:
        return True
    if before[0] not in (b"=", b"{", b"("):
        return False
    name = file.tokens[call.at - 2]
    declared = file.declaration_of(name.text, name.start)
    if declared is None:
        return False
    words = declared.type.replace(b"::", b" ").split()
    return words.count(b"long") == 2 or bool(_WIDE_TYPES & set(words))
