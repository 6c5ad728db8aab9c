"""Triton's libdevice for CUDA.

## What it does

Finds imports of `triton.language.extra.cuda.libdevice`.

## Why it matters

Those functions call NVIDIA's libdevice, which is not available when compiling for an AMD GPU.

## Use instead

`triton.language.extra.libdevice`, which each backend implements (OCML on AMD). Functions that AMD lacks are a
compile-time error, never a wrong result.

## Fix safety

Safe if AMD's libdevice has every function that the file uses; otherwise replace the others by hand.

## References

- `triton.language.extra.hip.libdevice` and `triton.backends.amd.compiler`, Triton 3.9
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import statement_gate
from rocmend.port.python.imported import optional
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_CUDA = "triton.language.extra.cuda"
_ON_AMD = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "clz",
        "copysign",
        "cos",
        "cosh",
        "cyl_bessel_i0",
        "cyl_bessel_i1",
        "erf",
        "erfc",
        "erfcx",
        "erfinv",
        "exp",
        "exp2",
        "expm1",
        "fast_dividef",
        "fast_expf",
        "fast_tanhf",
        "finitef",
        "floor",
        "fma",
        "fmod",
        "hypot",
        "ilogb",
        "isfinited",
        "isinf",
        "isnan",
        "j0",
        "j1",
        "ldexp",
        "lgamma",
        "llrint",
        "log",
        "log10",
        "log1p",
        "log2",
        "nearbyint",
        "nextafter",
        "popc",
        "pow",
        "rint",
        "round",
        "rsqrt",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
        "y0",
        "y1",
    ]
)


@rule(
    "PY22",
    "Triton's libdevice for CUDA",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"libdevice",),
    sources=("triton.language.extra.hip.libdevice, Triton 3.9", "triton.backends.amd.compiler, Triton 3.9"),
    valid=(
        "from triton.language.extra import libdevice\n",
        "from triton.language.extra.hip import libdevice\n",
    ),
    invalid=(
        Case(
            "import triton\nfrom triton.language.extra.cuda import libdevice\n\n\n"
            "@triton.jit\ndef f(x):\n    return libdevice.tanh(x)\n",
            "import triton\n\nfrom package._rocm import is_rocm\n\nif is_rocm:\n"
            "    from triton.language.extra import libdevice\nelse:\n"
            "    from triton.language.extra.cuda import libdevice\n\n\n"
            "@triton.jit\ndef f(x):\n    return libdevice.tanh(x)\n",
        ),
        Case("from triton.language.extra.cuda import libdevice as ld\n\ny = ld.byte_perm(a, b, c)\n", None),
        Case("from triton.language.extra.cuda.libdevice import rsqrt, mulhi\n", None),
    ),
)
def libdevice(file: PythonFile) -> Iterable[Found]:
    """Find imports of it, or from it."""
    for node in [*file.of(ast.ImportFrom), *file.of(ast.Import)]:
        rocm, used = _rewritten(file, node)
        if rocm is None or optional(file, node) or file.side(node) is Side.CUDA:
            continue
        lacking = sorted(used - _ON_AMD)
        yield gated(
            file,
            node,
            statement_gate(file, node, rocm) if rocm and not lacking else (),
            message="CUDA's libdevice is not available on AMD GPUs"
            + (f", and AMD's lacks {', '.join(lacking)}" if lacking else ""),
            remedy="Import triton.language.extra.libdevice on ROCm, and write missing functions in Triton.",
        )


def _rewritten(file: PythonFile, node: ast.stmt) -> tuple[str | None, frozenset[str]]:
    """Return what to import instead and the functions that are used; None for other imports, empty where unknown."""
    if isinstance(node, ast.ImportFrom) and not node.level:
        names = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names)
        if node.module == f"{_CUDA}.libdevice":
            return f"from triton.language.extra.libdevice import {names}", frozenset(one.name for one in node.names)
        if node.module == _CUDA and any(one.name == "libdevice" for one in node.names):
            return (f"from triton.language.extra import {names}" if len(node.names) == 1 else ""), _attributes(file)
    if isinstance(node, ast.Import) and any(one.name == f"{_CUDA}.libdevice" for one in node.names):
        if len(node.names) == 1 and node.names[0].asname:
            return f"import triton.language.extra.libdevice as {node.names[0].asname}", _attributes(file)
        return "", frozenset()
    return None, frozenset()


@lru_cache(maxsize=2)
def _attributes(file: PythonFile) -> frozenset[str]:
    head = f"{_CUDA}.libdevice."
    return frozenset(
        name.removeprefix(head)
        for node in file.of(ast.Attribute)
        for name in file.names(node)
        if name is not None and name.startswith(head)
    )
