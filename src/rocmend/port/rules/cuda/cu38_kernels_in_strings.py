"""Device code in a string, compiled at run time.

## What it does

Reports strings with device code (`__global__`, `__device__`) that works across the lanes of a warp or holds inline
PTX.

## Why it matters

hipRTC compiles such a string as NVRTC did, but nothing in a string is ported: `__shfl_down` and `__any` are
wavefront-wide there (64 lanes on gfx9), and `warpSize` is 64. There is no warning.

## Use instead

The helpers of `warp32.h` in the string on the ROCm side, given to hipRTC as a header; or a file with the device code,
which is ported.

## Fix safety

Manual: the program decides how the string is built and compiled.

## References

- HIP porting guide, hipRTC
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.texts import across_lanes


@rule(
    "CU38",
    "Device code in a string",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"nvrtc", b"__global__", b"__device__"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_rtc.html",),
    valid=(
        'const char* s = "__global__ void k(float* x) { x[threadIdx.x] = 1; }";\n',
        '__global__ void k() {\n  printf("__shfl_sync(");\n}\n',
    ),
    invalid=(
        Case('const char* s = R"(__global__ void k(int* x) { x[0] = __shfl_down(x[0], 16); })";\n', None),
        Case('const char* s =\n    "__global__ void k(int* x) {"\n    "  x[0] = threadIdx.x % warpSize; }";\n', None),
    ),
)
def kernels_in_strings(file: CudaFile) -> Iterator[Found]:
    """Yield the strings, neighbours as one."""
    index = 0
    tokens = file.tokens
    while index < len(tokens):
        first = index
        while index < len(tokens) and tokens[index].kind == Kind.STRING:
            index += 1
        if index == first:
            index += 1
            continue
        text = b"\n".join(file.data[token.start : token.end] for token in tokens[first:index])
        name = across_lanes(text)
        if name and file.shared(tokens[first].start):
            yield Found(
                tokens[first].start,
                tokens[index - 1].end,
                f"device code in a string is not ported, and this string contains {name}",
                remedy="Use the helpers of warp32.h in the string on ROCm, or move the code into a file.",
            )
