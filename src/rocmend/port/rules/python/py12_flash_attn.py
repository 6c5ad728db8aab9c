"""flash-attn.

## What it does

Finds imports of `flash_attn` that the file cannot do without, and, as a note, those that it can.

## Why it matters

flash-attn is built for CUDA; a build for ROCm exists for some gfx targets and has to be installed from elsewhere. An
import at the top of a file keeps the whole package from being imported.

## Use instead

A module with the same functions that takes the vendor's library where there is one (aiter, flash-attn for ROCm), else
PyTorch's `scaled_dot_product_attention`, else plain products, chosen once and logged.

## Fix safety

A suggestion: the stand-in computes the same function for the arguments that it knows and refuses the others, but sums
in another order. `flash_attn_func` and `flash_attn_varlen_func` are rewritten; other names are for a person.

## References

- <https://github.com/Dao-AILab/flash-attention>, whose README says what the ROCm builds cover
- <https://github.com/ROCm/aiter>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated, told
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import statement_gate
from rocmend.port.python.imported import imports_of, optional
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_KNOWN = {"flash_attn_func", "flash_attn_varlen_func"}
_MODULES = {"flash_attn", "flash_attn.flash_attn_interface"}


@rule(
    "PY12",
    "import of flash_attn",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"flash_attn",),
    sources=("https://github.com/Dao-AILab/flash-attention", "https://github.com/ROCm/aiter"),
    valid=(
        "import torch.nn.functional as F\n\nflash_attn = F.scaled_dot_product_attention\n",
        "import torch\n\nif not torch.version.hip:\n    from flash_attn import flash_attn_func\n",
    ),
    invalid=(
        Case(
            "import torch\nfrom flash_attn import flash_attn_func, flash_attn_varlen_func as varlen\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nif is_rocm:\n"
            "    from package._rocm_attention import flash_attn_func, flash_attn_varlen_func as varlen\n"
            "else:\n    from flash_attn import flash_attn_func, flash_attn_varlen_func as varlen\n",
        ),
        Case("from flash_attn.layers.rotary import RotaryEmbedding\n", None),
        Case(
            "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n    flash_attn_func = None\n", None
        ),
    ),
)
def flash_attn(file: PythonFile) -> Iterable[Found]:
    """Find imports, guarded or not."""
    for node, _ in imports_of(file, "flash_attn"):
        if file.side(node) is Side.CUDA:
            continue
        if optional(file, node):
            yield told(
                file,
                node,
                "flash_attn is optional here: on ROCm the file goes the other way unless a build for ROCm is installed",
                outcome=Outcome.NOTE,
                severity=Severity.INFO,
            )
            continue
        edits: tuple[Edit, ...] = ()
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES and {one.name for one in node.names} <= _KNOWN:
            names = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names)
            edits = statement_gate(file, node, f"from _rocm_attention import {names}")
        yield gated(
            file,
            node,
            edits,
            message="flash_attn is built for CUDA: without a build for ROCm the import fails",
            remedy="On ROCm, use scaled_dot_product_attention, aiter, or a build of flash-attn for ROCm.",
            needs=("is_rocm", "attention"),
        )
