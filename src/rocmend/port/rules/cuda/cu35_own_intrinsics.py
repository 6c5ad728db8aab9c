"""A function of the project that bears the name of an operation across lanes.

## What it does

Reports definitions of functions named like CUDA's operations across lanes (an own `__shfl_down` for `double`),
conditionals that ask for such a name, and macros that put one together (`__shfl_##how##_sync`). Uses of the name are
then left alone in the file.

## Why it matters

What the own function does decides which calls are CUDA's and which are not; overloads of the helpers would be
ambiguous with it. A name that is put together escapes every rewrite: what it becomes is HIP's function, as wide as the
wavefront.

## Use instead

Remove it if CUDA has had the overload since (`double` since CUDA 6.5), or give it a name of its own.

## Fix safety

For a person. Macros of such names are renamed with their uses, where they stand for shuffles or add a mask; one that
drops a mask or a barrier (`#define __syncwarp()`) for old CUDA would do so on ROCm, which compiles it, and is reported.

## References

- CUDA C++ programming guide, warp shuffle functions
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.intrinsics import INTRINSICS, TRIGGERS
from rocmend.port.wave.sites import wave

_PART = re.compile(rb"__(?:shfl|ballot|any|all|uni|match|reduce|syncwarp|activemask)\w*|\w*_sync")


@rule(
    "CU35",
    "Own function with the name of an operation across lanes",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(*TRIGGERS, b"##_sync", b"## _sync"),
    sources=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warp-shuffle-functions",),
    valid=(
        "#if CUDART_VERSION < 9000\n#define __shfl_down_sync(m, v, d) __shfl_down(v, d)\n#endif\n",
        "#if CUDART_VERSION >= 9000\n#define __any(p) __any_sync(0xffffffff, p)\n#endif\n",
        "__device__ double f(double v) {\n  return __shfl_down_sync(~0u, v, 1);\n}\n",
        "__device__ float4 __shfl_down(float4 v, unsigned d) {\n  return v;\n}\n",
    ),
    invalid=(
        Case("#if CUDART_VERSION < 9000\n#define __syncwarp()\n#endif\n", None),
        Case("#if CUDART_VERSION < 9000\n#define __any_sync(m, p) __any(p)\n#endif\n", None),
        Case("__device__ double __shfl_down(double v, unsigned d) {\n  return v;\n}\n", None),
        Case("#define SHUFFLE(how, v, d) __shfl_##how(v, d)\n", None),
        Case("#define VOTE(how, v) __##how##_sync(0xffffffff, v)\n", None),
        Case("#ifndef __shfl_sync\n#define OLD 1\n#endif\n", None),
    ),
)
def own_intrinsics(file: CudaFile) -> Iterator[Found]:
    """Yield the definitions, the questions, and the names that macros put together."""
    for index, token in enumerate(file.tokens):
        if token.text == b"##" and token.directive >= 0 and file.shared(token.start):
            parts = (file.tokens[index - 1], *file.tokens[index + 1 : index + 2])
            if any(_PART.fullmatch(part.text) for part in parts):
                yield Found(
                    parts[0].start,
                    parts[-1].end,
                    "the name of an operation across lanes is put together by a macro: it is HIP's own on ROCm",
                    remedy="Write the operations out, or put together names of helpers that call them.",
                )
    yield from _dropped(file)
    for site in wave(file).sites:
        if not site.tested and (not site.defines or site.intrinsic.name not in wave(file).defined):
            continue
        token = file.tokens[site.at]
        name = token.text.decode()
        what = f"a function named {name} is defined here" if site.defines else f"{name} is asked for as a macro here"
        yield Found(
            token.start,
            token.end,
            f"{what}: which calls are CUDA's is not known",
            remedy="Give it a name of its own, or remove it where CUDA has the operation for that type.",
        )


def _dropped(file: CudaFile) -> Iterator[Found]:
    """Yield the macros for old CUDA, compiled on ROCm, that take a mask and do without it."""
    for name, macros in file.macros.items():
        intrinsic = INTRINSICS.get(name)
        if intrinsic is None or not intrinsic.masked or intrinsic.kind == "shuffle":
            continue
        for macro in macros:
            words = {token.text for token in file.tokens[macro.first : macro.last]}
            masks = any(INTRINSICS[word].masked for word in words if word in INTRINSICS)
            if file.shared(macro.name.start) and not masks:
                yield Found(
                    macro.name.start,
                    macro.name.end,
                    f"this macro drops what {name.decode()} does on ROCm too, which counts as the oldest CUDA",
                    remedy="Leave it out on ROCm: add `&& !defined(USE_ROCM)` to its condition, then port again.",
                )
