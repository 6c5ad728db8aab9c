"""Device code in a string of a Python file.

## What it does

Finds strings with device code (`__global__`, `__device__`) that works across the lanes of a warp or holds inline PTX:
sources for `load_inline`, for templates, for files that are written and compiled.

## Why it matters

Nothing in a string is ported. PyTorch translates the names of such a source for ROCm, not its masks and widths: masks
of 32 bits do not compile there, and `__shfl_down(v, 16)`, `__any` and `warpSize` are as wide as the wavefront, 64
lanes on gfx9, with no warning.

## Use instead

A file with the device code, which is ported; `load(sources=[…])` compiles it. Or the helpers of `warp32.h` in the
string.

## Fix safety

Not rewritten: the program decides how the string is built and compiled.

## References

- <https://docs.pytorch.org/docs/stable/cpp_extension.html#torch.utils.cpp_extension.load_inline>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule
from rocmend.port.wave.texts import across_lanes


@rule(
    "PY43",
    "Device code in a string",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"__global__", b"__device__"),
    sources=("https://docs.pytorch.org/docs/stable/cpp_extension.html#torch.utils.cpp_extension.load_inline",),
    valid=(
        'SOURCE = "__global__ void k(float* x) { x[threadIdx.x] = 1; }"\n',
        'NAME = "__shfl_down_sync("\nOTHER = "__global__"\n',
    ),
    invalid=(
        Case(
            "from torch.utils.cpp_extension import load_inline\n\n"
            'm = load_inline("m", "", cuda_sources="""\n__global__ void k(float* x) {\n'
            '  x[threadIdx.x] += __shfl_down(x[threadIdx.x], 16);\n}\n""")\n',
            None,
        ),
        Case('SOURCE = f"__device__ int f(int {name}) {{ return {name} % warpSize; }}"\n', None),
    ),
)
def inline_source(file: PythonFile) -> Iterable[Found]:
    """Find the strings; those of CuPy are another rule's."""
    if b"cupy" in file.data:
        return
    inside = {id(part) for whole in file.of(ast.JoinedStr) for part in whole.values}
    strings: list[tuple[ast.expr, str]] = [
        (node, node.value) for node in file.of(ast.Constant) if isinstance(node.value, str) and id(node) not in inside
    ]
    for whole in file.of(ast.JoinedStr):
        parts = [part.value for part in whole.values if isinstance(part, ast.Constant)]
        strings.append((whole, " ".join(part for part in parts if isinstance(part, str))))
    for node, text in strings:
        word = across_lanes(text.encode("utf-8", "replace"))
        if word and node in file.on_rocm([node]):
            yield told(
                file,
                node,
                f"device code in a string is not ported, and this string contains {word}",
                outcome=Outcome.MANUAL,
                remedy="Move it into a file, which is ported, or make it correct for wavefront sizes 32 and 64.",
            )
