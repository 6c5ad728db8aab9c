"""A CUDA header.

## What it does

Finds ``#include`` lines that name headers of the CUDA toolkit, and sources that use CUDA's names with no such line
(nvcc includes ``cuda_runtime.h`` by itself). Nothing is to be done where PyTorch's build compiles a project's CUDA for
ROCm already, and a source needs no other names than that build translates by itself (hipify).

## Why it matters

ROCm has no header of that name. HIP's headers replace most of them, with other names.

## Use instead

On the ROCm side the compatibility header ``cuda_to_hip.h``: it includes the HIP headers that the project needs and
defines the CUDA names that the project uses as HIP's.

## Fix safety

Safe: the lines are kept for NVIDIA. A header without a ROCm counterpart is reported with what to do, and stays. A
quoted name that may be the project's own header (``"math_functions.h"``) is included if it exists.

## References

- HIP porting guide: https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import BOM, Kind
from rocmend.port.cuda.names import ambiguous, header_of, hip_names
from rocmend.port.cuda.torch_names import CUB, HEADERS, NAMES, SUPPORTED_BY_TORCH
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_INCLUDE = b'#include "cuda_to_hip.h"\n'
_NEEDS = ("cuda_to_hip",)
_OWN_OR_NONE = (
    b"#if __has_include(NAME) // this project's own: CUDA's of that name is not needed\n#include NAME\n#endif\n"
)
_OWN_RULE = ("mma.h", "cutlass/", "cute/", "cuda/", "cooperative_groups/")
"""Reported by rules of their own: CU14, CU16 and CU24."""


@rule(
    "CU40",
    "a CUDA header",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(
        *(b"cu", b"<<<", b"__global__", b"__device__", b"nccl.h", b"mma.h", b"nv", b"math_constants.h"),
        *(b"cooperative_groups", b"_types.h", b"_functions.h", b"_functions.hpp", b"_intrinsics.h"),
        *(b"host_config.h", b"host_defines.h", b"channel_descriptor.h", b"device_launch_parameters.h"),
        *(b"npp", b"optix.h", b"NvInfer"),
    ),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "measured: HIP 6.4 and 7.1 headers",
    ),
    valid=(
        "#include <cstdio>\nint main() { return 0; }\n",
        "#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n",
        "// #include <cuda_runtime.h>\n",
        "#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n#include <cuda.h>\n#endif\n__global__ void k();\n",
        (
            "#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#define cudaFree hipFree\n#else\n"
            "#include <cuda_runtime.h>\n#endif\nvoid f(void *p) { cudaFree(p); }\n"
        ),
    ),
    invalid=(
        Case(
            "#include <cuda_runtime.h>\n#include <cstdio>\n",
            '#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#else\n#include <cuda_runtime.h>\n#endif\n#include <cstdio>\n',
        ),
        Case(
            "#include <cuda.h>\n#include <cublas_v2.h>\nint x;\n",
            '#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#else\n#include <cuda.h>\n#include <cublas_v2.h>\n#endif\n'
            "int x;\n",
        ),
        Case(
            "// A kernel.\n#include <cstdio>\n__global__ void k() {}\n",
            '// A kernel.\n#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#endif\n#include <cstdio>\n'
            "__global__ void k() {}\n",
        ),
        Case(
            '#include <cuda_runtime.h>\n#include "math_functions.h"\n',
            '#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n'
            "#if __has_include(\"math_functions.h\") // this project's own: CUDA's of that name is not needed\n"
            '#include "math_functions.h"\n#endif\n'
            '#else\n#include <cuda_runtime.h>\n#include "math_functions.h"\n#endif\n',
        ),
        Case(
            "#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n"
            "void f(void *p) { cudaFree(p); }\n",
            '#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#endif\n#ifdef USE_ROCM\n#include <hip/hip_runtime.h>\n#else\n'
            "#include <cuda_runtime.h>\n#endif\nvoid f(void *p) { cudaFree(p); }\n",
        ),
        Case(
            "/* A header. */\n#pragma once\n\n#include <cstdio>\n__global__ void k() {}\n",
            '/* A header. */\n#pragma once\n\n#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#endif\n#include <cstdio>\n'
            "__global__ void k() {}\n",
        ),
        Case(
            "#ifndef A_H\n#define A_H\n__global__ void k() {}\n#endif\n",
            '#ifndef A_H\n#define A_H\n#ifdef USE_ROCM\n#include "cuda_to_hip.h"\n#endif\n'
            "__global__ void k() {}\n#endif\n",
        ),
        Case("#include <cudnn.h>\n", None),
    ),
)
def check(file: CudaFile) -> Iterator[Found]:
    """Yield the lines that include headers of CUDA, and the place where one is missing."""
    unless = (SUPPORTED_BY_TORCH,) if _known_to_torch(file) else ()
    seen: list[int] = []  # where the compatibility header is included already, in shared code or on the ROCm side
    reported = False
    for included, number in file.includes:
        directive = file.directives[number]
        token = file.tokens[directive.first]
        header = file.tokens[directive.first + 2]
        if included.strip(b'"<>').rpartition(b"/")[2] == b"cuda_to_hip.h" and file.on_rocm(token.start):
            seen.append(token.start)
            continue
        if not file.shared(token.start):
            continue
        known = header_of(included)
        if known is None or (included.startswith(b'"') and _is_own(included)):
            continue
        if known.advice:
            name = included.decode("utf-8", "replace").strip('<>"')
            if not name.startswith(_OWN_RULE):
                yield Found(
                    token.start,
                    header.end,
                    f"ROCm has no header for {included.decode('utf-8', 'replace')}",
                    outcome=Outcome.MANUAL,
                    remedy=known.advice,
                )
            continue
        reported = True
        again = any(_covers(file, at, token.start) for at in seen)
        text = b"" if again else _INCLUDE
        if included.startswith(b'"') and ambiguous(included):
            text += _OWN_OR_NONE.replace(b"NAME", included)
        if not again:
            seen.append(token.start)
        yield Found(
            token.start,
            header.end,
            f"{included.decode('utf-8', 'replace')} is a CUDA header",
            (Edit(directive.start, directive.end, text),),
            needs=_NEEDS,
            unless=unless,
        )
    if not reported and not seen:
        yield from _missing(file, unless)


def _known_to_torch(file: CudaFile) -> bool:
    """Return whether PyTorch's build translates every header and name of CUDA that is not for ROCm already."""
    for included, number in file.includes:
        if file.shared(file.directives[number].start):
            known = header_of(included)
            if known is not None and included.strip(b'"<>') not in HEADERS:
                return False
    for at in file.names(b"cub"):
        following = [token.text for token in file.tokens[at + 1 : at + 3]]
        if following[:1] == [b"::"] and following[1] not in CUB:
            return False
    mine = hip_names()
    used = (name for name in file.all_names if name in mine and name not in NAMES)
    return not any(next(file.names(name), None) is not None for name in used)


def _is_own(included: bytes) -> bool:
    """Return whether a header in quotes is likely the project's own (``"cub/x.h"`` of a copy in the tree)."""
    return b"/" in included


def _covers(file: CudaFile, one: int, other: int) -> bool:
    """Return whether what one offset includes is there wherever the other is compiled."""
    branch = file.branch_at(one)
    while branch is not None:
        if branch.rocm is not True and not branch.start <= other < branch.end:
            return False
        branch = file.branches[branch.parent] if branch.parent >= 0 else None
    return True


_OF_HIP = (b"<hip/", b'"hip/')
_LANGUAGE = (b"__global__", b"__device__", b"__shared__", b"threadIdx", b"blockIdx")


def _missing(file: CudaFile, unless: tuple[str, ...]) -> Iterator[Found]:
    """Yield the place for the compatibility header in a source that uses CUDA and includes none of its headers."""
    known = hip_names()
    by_hand = any(
        included.startswith(_OF_HIP) and file.on_rocm(file.directives[number].start)
        for included, number in file.includes
    )
    language = () if by_hand else _LANGUAGE  # HIP's header brings it
    first = None
    for name in file.all_names:
        if (name in known and not (by_hand and name in file.macros)) or name in language:
            index = next(file.names(name), None)
            if index is not None and (first is None or index < first):
                first = index
    if first is None:
        return
    used = file.tokens[first]
    at = _guarded(file, used.start) or _top(file)
    yield Found(
        used.start,
        used.end,
        "CUDA is used without including a CUDA header: nvcc or another header provides it",
        (Edit(at, at, _INCLUDE),),
        needs=_NEEDS,
        unless=unless,
    )


def _guarded(file: CudaFile, used: int) -> int:
    """Return the offset of the first include after ``#pragma once`` or an include guard; 0 where there is neither.

    Without an include before the first use of CUDA, it is that of the line after the guard.
    """
    named = [one for one in file.directives if one.start < used]
    words = [[token.text for token in file.tokens[one.first + 1 : one.last]] for one in named[:2]]
    if words and words[0] == [b"pragma", b"once"]:
        count = 1
    elif len(words) == 2 and words[0][:1] == [b"ifndef"] and words[1] == [b"define", *words[0][1:]]:
        count = 2
    else:
        return 0
    last = named[count - 1]
    if any(one.start < last.start and one.directive < 0 for one in file.tokens):
        return 0
    follows = named[count] if len(named) > count else None
    plain = follows is not None and follows.name == b"include"
    between = (one for one in file.tokens if follows is not None and last.end <= one.start < follows.start)
    if follows is not None and plain and not any(one.directive < 0 for one in between):
        return follows.start
    return last.end


def _top(file: CudaFile) -> int:
    """Return the offset after the comments that a file begins with."""
    at = len(BOM) if file.data.startswith(BOM) else 0
    ends = [file.tokens[0].start if file.tokens else len(file.data)]
    starts = file.lexed.line_starts
    line = file.line_of(ends[0]) - 1
    top = starts[line]
    # A comment that belongs to what follows it stays with it.
    while line > 0 and file.data[starts[line - 1] : starts[line]].lstrip().startswith(b"//!"):
        line -= 1
        top = starts[line]
    if any(one.kind == Kind.COMMENT and one.start < top < one.end for one in file.comments):
        top = at
    return max(at, top)
