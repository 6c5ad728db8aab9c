"""An 8-bit float type that not every AMD GPU supports.

## What it does

Finds `torch.float8_e4m3fn`: where it can be rewritten, each place; else the file, at the first.

## Why it matters

gfx942 (MI300X) supports `float8_e4m3fnuz`, whose range ends at 240 and which has no negative zero; gfx950 and gfx12
support `float8_e4m3fn`, which ends at 448; older targets have neither. With the other type, matmuls fail or are slow.

## Use instead

The type that the GPU supports, and scales computed from its `torch.finfo`.

## Fix safety

A suggestion, for conversions, allocations and `torch.finfo`, where a file uses the type in no other way: all of its
uses are rewritten, or none. Where it is compared, looked up, viewed as, kept under a name, or where a range of 448 is
written out, check the scales by hand: the same byte has half the value in one type as in the other.

No part of it is automatic. Unported code fails loudly, as matmuls on gfx942 reject the type, while a partial change
is silently wrong: scales that another file or a checkpoint computed for 448 overflow at 240. Whether there are such
scales cannot be told from one file.

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

_TYPE = "torch.float8_e4m3fn"
_RANGE = re.compile(rb"\b448(?:\.0*)?\b")
_NAMED = re.compile(rb"[\"'](?:torch\.)?float8_e4m3fn[\"']")


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
        Case(
            "import torch\n\nm = torch.finfo(torch.float8_e4m3fn).max\n"
            "y = (x / s).clamp(-m, m).to(torch.float8_e4m3fn)\n",
            "import torch\n\nfrom package._rocm import is_rocm\nfrom package._rocm_fp8 import float8_e4m3\n\n"
            "m = torch.finfo(float8_e4m3() if is_rocm else torch.float8_e4m3fn).max\n"
            "y = (x / s).clamp(-m, m).to(float8_e4m3() if is_rocm else torch.float8_e4m3fn)\n",
        ),
        Case(
            "import torch\n\ny = (x / s).to(torch.float8_e4m3fn)\nassert y.dtype == torch.float8_e4m3fn\n",
            None,
        ),
        Case("import torch\n\nF8 = torch.float8_e4m3fn\ny = (x / s).to(F8)\n", None),
        Case("import torch\n\ns = x.abs().max() / 448.0\ny = (x / s).to(torch.float8_e4m3fn)\n", None),
        Case("import torch\n\ny = x.view(torch.float8_e4m3fn)\n", None),
    ),
    once=True,
)
def float8(file: PythonFile) -> Iterable[Found]:
    """Find uses of the type on ROCm; they are rewritten all or none, for they have to agree."""
    nodes = [node for node in file.references(_TYPE) if file.side(node) is not Side.CUDA]
    gates = {node: expression_gate(file, node, "float8_e4m3()") for node in nodes if _follows(file, node)}
    told = _RANGE.search(file.data) is not None or _NAMED.search(file.data) is not None
    whole = not told and all(gates.get(node) for node in nodes) and not _held(file)
    for node in nodes:
        yield gated(
            file,
            node,
            gates[node] if whole else (),
            message="gfx942 supports float8_e4m3fnuz, gfx950 and gfx12 support float8_e4m3fn, older targets neither",
            remedy="Select the type by gcnArchName, and take range and scales from torch.finfo.",
            needs=("is_rocm", "fp8"),
        )


def _follows(file: PythonFile, node: ast.expr) -> bool:
    """Whether a use stays right with the other type: a conversion, an allocation, or what is asked about the type."""
    parent = file.parent(node)
    if isinstance(parent, ast.keyword):
        return parent.arg == "dtype"
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    if file.qualified(parent.func) == "torch.finfo":
        return True
    return isinstance(parent.func, ast.Attribute) and parent.func.attr in {"to", "type"}


def _held(file: PythonFile) -> bool:
    """Whether a name is bound to the type that is not followed further."""
    return any(
        not all(bound.imported for bound in found[1])
        for name in file.of(ast.Name)
        if isinstance(name.ctx, ast.Load) and _TYPE in file.names(name) and (found := file.scope(name).lookup(name.id))
    )
