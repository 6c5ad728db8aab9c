"""A warp size queried at run time, or needed as a constant.

## What it does

Replaces `properties.warpSize` with 32 on the host, and reports what cannot be rewritten:
`cudaDevAttrWarpSize`, and constants or bounds of arrays made from a library's wave size.

## Why it matters

On gfx9 the device reports 64. A launch sized with it no longer fits kernels written for 32-lane warps. Since
ROCm 7 the libraries' wave sizes (`C10_WARP_SIZE`, `rocprim::warp_size()`) are no constants, so that arrays cannot be
sized with them.

## Use instead

32, as on every NVIDIA GPU. Uses that only print the value are not reported.

## Fix safety

Safe where it is rewritten: it is the value that the program has had wherever it ran. A member of that name of the
project's own type is left alone; one of an object of unknown type has to be ported by hand.

## References

- HIP porting guide, warp size
- ROCm 7 release notes
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.tokens import text_at

_PRINTS = frozenset((b"printf", b"fprintf", b"cout", b"cerr", b"snprintf", b"print", b"format", b"std::cout"))
_PURE = frozenset((b"getCurrentDeviceProperties", b"getDeviceProperties"))


@rule(
    "CU11",
    "Warp size queried at run time",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"warpSize", b"WarpSize", b"WARP_SIZE", b"warp_size"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "https://rocm.docs.amd.com/en/latest/about/release-notes.html",
    ),
    valid=(
        'void f(cudaDeviceProp p) {\n  printf("%d\\n", p.warpSize);\n}\n',
        "void f(cudaDeviceProp& p) {\n  p.warpSize = 32;\n}\n",
        "int n = threadIdx.x % C10_WARP_SIZE;\n",
        "struct Tile {\n  int warpSize = 16;\n};\nint f(Tile t) {\n  return 4 * t.warpSize;\n}\n",
    ),
    invalid=(
        gated(
            "  int threads = 4 * properties.warpSize;",
            "  int threads = 4 * 32;",
            "void f(cudaDeviceProp properties) {\n",
            "}\n",
        ),
        gated(
            "  dim3 block(at::cuda::getCurrentDeviceProperties()->warpSize, 4);",
            "  dim3 block(32, 4);",
            "void f() {\n",
            "}\n",
        ),
        Case("int f() {\n  return settings->warpSize;\n}\n", None),
        Case("void f(int* w) {\n  cudaDeviceGetAttribute(w, cudaDevAttrWarpSize, 0);\n}\n", None),
        Case("constexpr int kLanes = C10_WARP_SIZE;\n", None),
    ),
)
def width_at_run_time(file: CudaFile) -> Iterator[Found]:
    """Yield the questions and the constants."""
    for index in file.names(b"warpSize"):
        if index < 2 or file.tokens[index - 1].text not in (b".", b"->") or _printed(file, index):
            continue
        first = _object(file, index - 1)
        token = file.tokens[index]
        of = _device(file, first, index - 1)
        if text_at(file, index + 1) == b"=" or of is False:
            continue
        if of is None:
            yield _manual(file.tokens[index - 1].start, token.end, "the device's warp size is 64 on gfx9")
            continue
        start = file.tokens[first].start
        yield Found(
            start,
            token.end,
            "the device's warp size is 64 on gfx9, and the code assumes 32",
            (Edit(start, token.end, b"32"),),
        )
    for index in file.names(b"cudaDevAttrWarpSize", b"CU_DEVICE_ATTRIBUTE_WARP_SIZE"):
        yield _manual(file.tokens[index].start, file.tokens[index].end, "the device's warp size is 64 on gfx9")
    for index in file.names(b"C10_WARP_SIZE", b"warp_size"):
        if file.tokens[index].text not in file.macros and _constant(file, index):
            token = file.tokens[index]
            yield _manual(token.start, token.end, f"{token.text.decode()} is not a constant since ROCm 7")


def _manual(start: int, end: int, message: str) -> Found:
    remedy = "Use 32 if the kernels use 32-lane warps; query the device only to print the value."
    return Found(start, end, message, outcome=Outcome.MANUAL, remedy=remedy)


def _statement(file: CudaFile, index: int) -> int:
    """Return the index of the first token of the statement around a token."""
    while index > 0 and file.tokens[index - 1].text not in (b";", b"{", b"}"):
        index -= 1
    return index


def _printed(file: CudaFile, index: int) -> bool:
    first = _statement(file, index)
    return any(token.text in _PRINTS for token in file.tokens[first:index])


def _object(file: CudaFile, dot: int) -> int:
    """Return the index of the first token of the object whose member is taken; -1 where that is more than names."""
    tokens = file.tokens
    at = dot - 1
    while at >= 0:
        if tokens[at].text == b")" and at in file.partner:
            opened = file.partner[at]
            if tokens[opened - 1].text not in _PURE:
                return -1
            at = opened - 1
        elif tokens[at].text == b"]" and at in file.partner:
            at = file.partner[at] - 1
        if tokens[at].kind != Kind.NAME:
            return -1
        if at >= 2 and tokens[at - 1].text in (b".", b"->", b"::"):
            at -= 2
            continue
        return at
    return -1


def _device(file: CudaFile, first: int, dot: int) -> bool | None:
    """Tell whether an object is a device's properties; None where that is not known.

    Args:
        file: The source.
        first: Index of its first token; -1 where it is more than names.
        dot: Index of the sign after it.
    """
    if first < 0:
        return None
    words = {token.text for token in file.tokens[first:dot]}
    if words & _PURE:
        return True
    single = not words & {b".", b"->", b"::"}
    declared = file.declaration_of(file.tokens[first].text, file.tokens[first].start) if single else None
    if declared is not None and declared.type != b"auto":
        return _TYPE.search(declared.type) is not None
    if declared is not None and declared.value is not None:
        given = {token.text for token in file.tokens[declared.value.first : declared.value.last]}
        return bool(given & _PURE) or None
    last = dot - 1
    while last in file.partner and file.partner[last] < last:
        last = file.partner[last] - 1
    return True if _NAME.search(text_at(file, last)) else None


_TYPE = re.compile(rb"(?:cuda|hip)DeviceProp")
_NAME = re.compile(rb"prop", re.IGNORECASE)


def _constant(file: CudaFile, index: int) -> bool:
    """Tell whether a name stands in a constant's value or in the bound of a shared array."""
    first = _statement(file, index)
    words = {token.text for token in file.tokens[first:index]}
    if file.tokens[index].text == b"warp_size" and text_at(file, index + 1) != b"(":
        return False
    bound = b"__shared__" in words and b"=" not in words
    return b"constexpr" in words or bound
