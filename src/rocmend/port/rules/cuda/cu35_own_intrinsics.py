"""A project function named like a cross-lane operation.

## What it does

Reports definitions of functions named like CUDA's cross-lane operations (a project's `__shfl_down` for `double`),
conditionals that test for such a name, and macros that build one (`__shfl_##how##_sync`). Uses of the name are then
left alone in the file.

## Why it matters

The project's function decides which calls are CUDA's; overloads of the helpers would be ambiguous with it. A name
built by a macro escapes every rewrite: it becomes HIP's wavefront-wide function.

## Use instead

Remove it if CUDA now has the overload (`double` since CUDA 6.5), or rename it.

## Fix safety

Manual. Macros of such names are renamed with their uses, where they stand for shuffles or add a mask; one that
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
    "Project function named like a cross-lane operation",
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
    told: set[int] = set()
    for index, token in enumerate(file.tokens):
        if token.text == b"##" and token.directive >= 0 and token.directive not in told and file.shared(token.start):
            parts = (file.tokens[index - 1], *file.tokens[index + 1 : index + 2])
            if any(_PART.fullmatch(part.text) for part in parts):
                told.add(token.directive)
                yield Found(
                    parts[0].start,
                    parts[-1].end,
                    "a macro builds the name of a cross-lane operation: on ROCm this calls HIP's own",
                    remedy="Write the operations out, or build names of helpers that call them.",
                )
    yield from _dropped(file)
    for site in wave(file).sites:
        if not site.tested and (not site.defines or site.intrinsic.name not in wave(file).defined):
            continue
        token = file.tokens[site.at]
        name = token.text.decode()
        what = f"a function named {name} is defined here" if site.defines else f"{name} is tested as a macro here"
        yield Found(
            token.start,
            token.end,
            f"{what}: it is unclear which calls are CUDA's",
            remedy="Rename it, or remove it if CUDA has the operation for that type.",
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
                    f"this macro disables {name.decode()} on ROCm too, which is treated as the oldest CUDA",
                    remedy="Exclude ROCm: add `&& !defined(USE_ROCM)` to the condition, then port again.",
                )
