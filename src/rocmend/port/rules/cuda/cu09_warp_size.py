"""`warpSize` in a kernel.

## What it does

Replaces CUDA's variable `warpSize` with 32.

## Why it matters

It is 32 on every NVIDIA GPU, and 64 on gfx9. Code that uses it usually also has arithmetic with 32: in
exllamav2's `head_norm.cu` a loop from `warpSize / 2` adds up 64 lanes and then one sum for each 32, so that on gfx9
with a head of 128 the total doubles. Since HIP 7 it is not a constant either, so it cannot be an array bound.

## Use instead

32, and 32-lane operations (CU01 to CU04, CU10). The code then has the same meaning on every wavefront size.

## Fix safety

Safe: it is the value that the code has had wherever it ran. A project's own variable or member of that name is left
alone, where it is in scope.

## References

- CUDA C++ programming guide, built-in variables
- HIP porting guide, warp size
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Found, rule
from rocmend.port.wave.cases import gated
from rocmend.port.wave.sites import wave
from rocmend.port.wave.template_names import template_parameter
from rocmend.port.wave.tokens import text_at


@rule(
    "CU09",
    "warpSize is 64 on gfx9",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"warpSize",),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#warpsize",
        "https://github.com/turboderp-org/exllamav2/blob/master/exllamav2/exllamav2_ext/cuda/head_norm.cu",
    ),
    valid=(
        "void f() {\n  const int warpSize = 32;\n  g(warpSize);\n}\n",
        "#define LANE(warpSize) (threadIdx.x % warpSize)\n",
        "int f(cudaDeviceProp p) {\n  return p.warpSize;\n}\n",
        "#ifdef USE_ROCM\nint w = warpSize;\n#endif\n",
    ),
    invalid=(
        gated(
            "  for (int i = warpSize / 2; i > 0; i /= 2) v += f(v, i);",
            "  for (int i = 32 / 2; i > 0; i /= 2) v += f(v, i);",
            "__device__ int g(int v) {\n",
            "  return v;\n}\n",
        ),
        gated(
            "__global__ void g(int* x) { x[0] = threadIdx.x % ::warpSize; }",
            "__global__ void g(int* x) { x[0] = threadIdx.x % 32; }",
            "struct S {\n  int warpSize;\n};\nvoid f(int warpSize) {\n  h(warpSize);\n}\n",
        ),
        gated("#define LANE (threadIdx.x % warpSize)", "#define LANE (threadIdx.x % 32)"),
    ),
)
def warp_size(file: CudaFile) -> Iterator[Found]:
    """Yield its uses."""
    if b"warpSize" in file.macros or wave(file).other_width is not None or _own_constant(file):
        return
    for index in file.names(b"warpSize"):
        token = file.tokens[index]
        start = token.start
        if text_at(file, index - 1) in (b".", b"->"):
            continue
        if text_at(file, index - 1) == b"::":
            if file.tokens[index - 2].kind == Kind.NAME and text_at(file, index - 2) not in _NO_NAMESPACES:
                continue
            start = file.tokens[index - 1].start  # ::warpSize
        elif file.declaration_of(b"warpSize", token.start) is not None:
            continue
        if token.directive >= 0 and file.directives[token.directive].name != b"define":
            continue
        yield Found(
            start,
            token.end,
            "warpSize is 64 on gfx9, and the code assumes 32",
            (Edit(start, token.end, b"32"),),
        )


_NO_NAMESPACES = frozenset((b"return", b"case", b"else", b"and", b"or", b"not"))


def _own_constant(file: CudaFile) -> bool:
    """Tell whether the file gives the name a meaning of its own: a template's or macro's parameter, an enumerator."""
    if any(b"warpSize" in (macro.parameters or ()) for macros in file.macros.values() for macro in macros):
        return True
    return any(
        template_parameter(file, index)
        or text_at(file, index + 1) == b"##"
        or (
            text_at(file, index + 1) == b"="
            and text_at(file, index - 1) in (b"{", b",")
            and file.declaration_of(b"warpSize", file.tokens[index].start) is None
        )
        for index in file.names(b"warpSize", shared=False)
    )
