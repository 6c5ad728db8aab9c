"""An 8-bit float type that not every AMD GPU has.

## What it does

Finds `torch.float8_e4m3fn`.

## Why it matters

gfx942 (MI300X) multiplies `float8_e4m3fnuz`, whose range ends at 240 and which has no negative zero; gfx950 and gfx12
multiply `float8_e4m3fn`, which ends at 448; older targets have neither. With the other type, products are refused or
slow.

## Use instead

The type of the architecture at hand, and scales computed from `torch.finfo` of it.

## Fix safety

A suggestion for a conversion. Where the type is compared, looked up, viewed as, or a range of 448 is written out, a
person must follow the scales: bytes in the one type mean half as much as in the other.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html>
- <https://rocm.docs.amd.com/en/latest/reference/precision-support.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_RANGE = re.compile(rb"\b448(?:\.0*)?\b")


@rule(
    "PY13",
    "torch.float8_e4m3fn",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"float8_e4m3fn",),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/low_fp_types.html",
        "https://rocm.docs.amd.com/en/latest/reference/precision-support.html",
    ),
    valid=(
        "import torch\n\ny = x.to(torch.float8_e5m2)\n",
        "import torch\n\ny = x.to(torch.float8_e4m3fnuz if torch.version.hip else torch.float8_e4m3fn)\n",
    ),
    invalid=(
        Case(
            "import torch\n\ny = (x / s).to(torch.float8_e4m3fn)\n",
            "import torch\n\nfrom package._rocm import is_rocm\nfrom package._rocm_fp8 import float8_e4m3\n\n"
            "y = (x / s).to(float8_e4m3() if is_rocm else torch.float8_e4m3fn)\n",
        ),
        Case("import torch\n\nif w.dtype == torch.float8_e4m3fn:\n    run(w)\n", None),
        Case("import torch\n\ns = x.abs().max() / 448.0\ny = (x / s).to(torch.float8_e4m3fn)\n", None),
        Case("import torch\n\ny = x.view(torch.float8_e4m3fn)\n", None),
    ),
)
def float8(file: PythonFile) -> Iterable[Found]:
    """Find uses of the type on ROCm."""
    scaled = _RANGE.search(file.data) is not None
    for node in file.references("torch.float8_e4m3fn"):
        if file.side(node) is Side.CUDA:
            continue
        edits = () if scaled or not _converts(file, node) else expression_gate(file, node, "float8_e4m3()")
        yield gated(
            file,
            node,
            edits,
            message="gfx942 multiplies float8_e4m3fnuz, gfx950 and gfx12 float8_e4m3fn, older targets neither",
            remedy="Choose the type by gcnArchName, and take ranges and scales from torch.finfo of it.",
            needs=("is_rocm", "fp8"),
        )


def _converts(file: PythonFile, node: ast.expr) -> bool:
    """Whether the type is an argument of a conversion or of an allocation."""
    parent = file.parent(node)
    if isinstance(parent, ast.keyword):
        return parent.arg == "dtype"
    return (
        isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in {"to", "type"}
    )
