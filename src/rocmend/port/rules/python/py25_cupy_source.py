"""CUDA source in a string, compiled by CuPy.

## What it does

Finds `cupy.RawKernel`, `RawModule`, `ElementwiseKernel` and `ReductionKernel`.

## Why it matters

CuPy compiles the source with HIPRTC on ROCm. Intrinsics with masks, lane arithmetic and inline PTX in it need the
same porting as in a source file, and no compiler checks it before run time.

## Use instead

The same source, correct for both wavefront sizes. Move it into a file, where it can be ported and checked.

## Fix safety

Not rewritten. Where nothing in the source depends on the wave size it is a note.

## References

- <https://docs.cupy.dev/en/stable/install.html#using-cupy-on-amd-gpu-experimental>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CALLS = tuple(f"cupy.{name}" for name in ("RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel"))
_SENSITIVE = re.compile(
    r"__(?:shfl|ballot|any|all|match|activemask|syncwarp|popc|ffs|dp4a|reduce_\w+_sync)|warp|lane|\basm\b|0xffffffff|__CUDA_ARCH__"
    r"|cooperative_groups|wmma|mma|>>\s*5\b|&\s*(?:31|0x1f)\b|%\s*32\b|/\s*32\b|cub::|#\s*include\s*<(?:cuda|cub|mma)",
    re.IGNORECASE,
)


@rule(
    "PY25",
    "CUDA source in a string",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"cupy",),
    sources=("https://docs.cupy.dev/en/stable/install.html#using-cupy-on-amd-gpu-experimental",),
    valid=("import cupy as cp\n\nx = cp.zeros(3)\n",),
    invalid=(
        Case(
            'import cupy as cp\n\nk = cp.RawKernel(r"""\nextern "C" __global__ void f(float* x) {\n'
            '  x[0] = __shfl_down_sync(0xffffffff, x[0], 1);\n}\n""", \'f\')\n',
            None,
        ),
        Case("import cupy\n\nk = cupy.RawModule(code=read())\n", None),
    ),
)
def cupy_source(file: PythonFile) -> Iterable[Found]:
    """Find sources, and look into those that are known."""
    for call in file.on_rocm_calls(*_CALLS):
        texts: list[str] = []
        complete = True
        for value in [
            *call.args,
            *(keyword.value for keyword in call.keywords if keyword.arg in {"code", "operation"}),
        ]:
            known, whole = file.values(value)
            texts += [text for text in known if isinstance(text, str)]
            complete &= whole
        manual = not complete or any(_SENSITIVE.search(text) for text in texts)
        yield told(
            file,
            call.node,
            "CUDA source in a string, which CuPy compiles with HIPRTC on ROCm",
            outcome=Outcome.MANUAL if manual else Outcome.NOTE,
            remedy="Make the source correct for wavefront sizes 32 and 64, without PTX." if manual else "",
            severity=None if manual else Severity.INFO,
        )
