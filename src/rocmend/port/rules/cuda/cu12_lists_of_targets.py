"""A list of gfx targets that decides the wavefront size.

## What it does

Reports conditionals that set a warp size by target name and list gfx10 and gfx11 but not gfx12, and
comparisons of architecture names with such prefixes.

## Why it matters

Every new family falls into the last branch: gfx12 has 32 lanes, and a list with "gfx10 or gfx11, else 64" gives it
64. mamba had two such lists: the build script's, and the one in `reverse_scan.cuh`.

## Use instead

`__AMDGCN_WAVEFRONT_SIZE` or `warpSize` in a kernel, `hipDeviceProp_t::warpSize` on the host, or 32-lane code on any
wavefront. If a list is needed, list the 64-lane families, gfx6 to gfx9: no more will be added.

## Fix safety

Manual: the code was written for ROCm.

## References

- LLVM, user guide for AMDGPU, processors. mamba, commit c809b2b
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_OLD = re.compile(rb"__(GFX1[01]__|gfx1[01]\w*__)")
_NEW = re.compile(rb"__(GFX12__|gfx12\w*__)")
_WIDTH = re.compile(rb"\w*(warp|wave|lanes|simd)\w*", re.IGNORECASE)
_TEXT = re.compile(rb"\"gfx1[01]\d*\"")


@rule(
    "CU12",
    "Wavefront size from a list of targets without gfx12",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"gfx1", b"__GFX1"),
    sources=(
        "https://llvm.org/docs/AMDGPUUsage.html#processors",
        "https://github.com/state-spaces/mamba/commit/c809b2b",
    ),
    valid=(
        "#if defined(__GFX9__)\n#define WARP_SIZE 64\n#else\n#define WARP_SIZE 32\n#endif\n",
        (
            "#if defined(__GFX10__) || defined(__GFX11__) || defined(__GFX12__)\n#define WARP_SIZE 32\n"
            "#else\n#define WARP_SIZE 64\n#endif\n"
        ),
        "#if defined(__gfx1100__)\n#define HAS_WMMA 1\n#endif\n",
    ),
    invalid=(
        Case(
            "#if defined(__GFX10__) || defined(__GFX11__)\n#define WARP_SIZE 32\n#else\n#define WARP_SIZE 64\n#endif\n",
            None,
        ),
        Case(
            (
                "#if defined(__gfx942__)\n#define WARP_THREADS 64\n#elif defined(__gfx1100__)\n"
                "#define WARP_THREADS 32\n#else\n#define WARP_THREADS 64\n#endif\n"
            ),
            None,
        ),
        Case(
            (
                "int lanes(std::string arch) {\n"
                '  int warp = arch.find("gfx10") == 0 || arch.find("gfx11") == 0 ? 32 : 64;\n'
                "  return warp;\n}\n"
            ),
            None,
        ),
    ),
)
def lists_of_targets(file: CudaFile) -> Iterator[Found]:
    """Yield the lists."""
    yield from _conditionals(file)
    for token in file.tokens:
        if token.kind != Kind.STRING or not _TEXT.fullmatch(file.data[token.start : token.end]):
            continue
        function = file.function_at(token.start)
        start, end = (function.head, function.end) if function else (token.start, token.end)
        inside = file.data[start:end]
        if b"gfx12" not in inside and b"64" in inside and re.search(rb"(?i)warp|wave|lanes", inside):
            yield _found(token.start, token.end)
            return


def _conditionals(file: CudaFile) -> Iterator[Found]:
    told: set[int] = set()
    for group in file.groups:
        last = group.last if group.last >= 0 else len(file.directives) - 1
        inside = [file.directives[number] for number in range(group.first, last + 1)]
        words = [word for one in inside for word in file.tokens[one.first : one.last]]
        defines = [
            file.tokens[one.first + 2].text for one in inside if one.name == b"define" and one.last - one.first > 2
        ]
        old = next((word for word in words if _OLD.fullmatch(word.text)), None)
        if old is None or any(_NEW.fullmatch(word.text) for word in words):
            continue
        wide = any(word.text == b"64" for word in words)
        if wide and old.start not in told and any(_WIDTH.fullmatch(name) for name in defines):
            told.add(old.start)
            yield _found(old.start, old.end)


def _found(start: int, end: int) -> Found:
    return Found(
        start,
        end,
        "this list assumes 64-lane wavefronts on gfx12, which has 32",
        remedy="List the 64-lane targets (gfx6 to gfx9), or use __AMDGCN_WAVEFRONT_SIZE or warpSize.",
    )
