"""A 32-bit shift by a lane index that may be 32 or more.

## What it does

Reports `1 << lane` and `1u << lane` where the lane index is that of the wavefront: `__lane_id()`, or a remainder by
`C10_WARP_SIZE` or `warp_size()`.

## Why it matters

A shift of 32 bits by 32 or more is undefined: on gfx9 lanes 32 to 63 get another lane's bit, without a warning.

## Use instead

`1ull << lane`, and 64 bits wherever the mask goes; or the lane of a 32-lane warp (`threadIdx.x % 32`), whose bit
fits.

## Fix safety

Manual: the types that the mask passes through have to be widened too. A lane of a 32-lane warp needs nothing: with
the helpers that CU01 to CU04 put in, masks have 32 bits on every wavefront.

## References

- C++ standard, shift operators
- HIP C++ language extensions, warp cross-lane functions
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.widths import WAVE_WIDE, wave_wide

_ONES = frozenset((b"1", b"1u", b"1U"))


@rule(
    "CU06",
    "32-bit shift by a wavefront lane index",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*WAVE_WIDE, b"__lane_id"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_cpp_language_extensions.html",
        "measured: `1u << lane` compiles for gfx942 without a warning",
    ),
    valid=(
        "__device__ unsigned f() {\n  return 1u << (threadIdx.x % 32);\n}\n",
        "__device__ unsigned long long f() {\n  return 1ull << __lane_id();\n}\n",
    ),
    invalid=(
        Case("__device__ unsigned f() {\n  return 1u << (threadIdx.x % C10_WARP_SIZE);\n}\n", None),
        Case("__device__ unsigned f() {\n  const int lane = __lane_id();\n  return (1 << lane) - 1;\n}\n", None),
    ),
)
def bits_of_wide_lanes(file: CudaFile) -> Iterator[Found]:
    """Yield the shifts."""
    wide = set(wave_wide(file)) | set(file.names(b"__lane_id"))
    if not wide:
        return
    for index, token in enumerate(file.tokens):
        if token.text != b"<<" or index < 1 or file.tokens[index - 1].text not in _ONES or not file.shared(token.start):
            continue
        last = index + 1
        while last < len(file.tokens) and file.tokens[last].text not in (b";", b")", b",", b"}"):
            last = file.partner.get(last, last) + 1 if file.tokens[last].text in (b"(", b"[") else last + 1
        places = set(range(index + 1, last))
        if last == index + 2:
            declared = file.declaration_of(text_at(file, index + 1), token.start)
            if declared is not None and declared.value is not None:
                places = set(range(declared.value.first, declared.value.last))
        if places & wide:
            yield Found(
                file.tokens[index - 1].start,
                file.tokens[last - 1].end,
                "the lane index goes up to 63 on a 64-lane wavefront, but the shift has 32 bits",
                remedy="Shift 1ull and keep the mask in 64 bits, or use the lane index within a 32-lane warp.",
            )
