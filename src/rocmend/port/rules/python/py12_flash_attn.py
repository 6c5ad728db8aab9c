"""flash-attn.

## What it does

Finds unconditional imports of `flash_attn` and, as a note, optional ones; not in flash-attn itself.

## Why it matters

flash-attn is built for CUDA; a build for ROCm exists for some gfx targets and has to be installed from elsewhere. An
import at the top of a file keeps the whole package from being imported.

## Use instead

A module with the same functions that uses the vendor's library if available (aiter, flash-attn for ROCm), else
PyTorch's `scaled_dot_product_attention`, else plain matmuls, chosen once and logged.

## Fix safety

A suggestion: the replacement computes the same function for the arguments that it supports and rejects the others,
but sums in another order. `flash_attn_func`, `flash_attn_varlen_func` and their packed forms are rewritten; other
names (`flash_attn_with_kvcache`, `bert_padding`, rotary embeddings and layers) have to be ported by hand, and so has
flash-attn 3's interface (`flash_attn_interface`), whose results have another form.

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
from rocmend.port.python.imported import imports_of, optional, unless_own
from rocmend.port.python.units import ATTENTION_FUNCTIONS
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_KNOWN = set(ATTENTION_FUNCTIONS)
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
        Case(
            "import flash_attn as fa\n\n\ndef f(qkv):\n    return fa.flash_attn_qkvpacked_func(qkv, causal=True)\n",
            "from package._rocm import is_rocm\n\nif is_rocm:\n"
            "    from package._rocm_attention import flash_attn as fa\nelse:\n    import flash_attn as fa\n\n\n"
            "def f(qkv):\n    return fa.flash_attn_qkvpacked_func(qkv, causal=True)\n",
        ),
        Case("import flash_attn\n\nprint(flash_attn.__version__)\n", None),
        Case("from flash_attn.layers.rotary import RotaryEmbedding\n", None),
        Case("from flash_attn_interface import flash_attn_func\n", None),
        Case(
            "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n    flash_attn_func = None\n", None
        ),
    ),
    once=True,
)
def flash_attn(file: PythonFile) -> Iterable[Found]:
    """Find imports, guarded or not."""
    for node, library in imports_of(file, "flash_attn", "flash_attn_interface", "flash_attn_2_cuda"):
        if file.side(node) is Side.CUDA:
            continue
        own = (*unless_own("flash_attn"), f"{library}.py")
        if optional(file, node):
            yield told(
                file,
                node,
                "flash_attn is optional here: on ROCm the fallback is used unless a ROCm build is installed",
                outcome=Outcome.NOTE,
                severity=Severity.INFO,
            )._replace(unless=own)
            continue
        names = _names(file, node)
        edits: tuple[Edit, ...] = ()
        if names:
            edits = statement_gate(file, node, f"from _rocm_attention import {names}")
        yield gated(
            file,
            node,
            edits,
            message="flash_attn is built for CUDA: without a ROCm build the import fails",
            remedy="On ROCm, use scaled_dot_product_attention, aiter, or a ROCm build of flash-attn.",
            needs=("is_rocm", "attention"),
        )._replace(unless=own)


def _names(file: PythonFile, node: ast.Import | ast.ImportFrom) -> str:
    """Return what is imported from the stand-in instead; empty where it lacks something that is used."""
    if isinstance(node, ast.ImportFrom):
        known = node.module in _MODULES and {one.name for one in node.names} <= _KNOWN
        shown = [f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names]
        return ", ".join(shown) if known else ""
    if len(node.names) != 1 or node.names[0].name != "flash_attn":
        return ""
    name = node.names[0].asname or "flash_attn"
    uses = [use for use in file.of(ast.Name) if use.id == name and isinstance(use.ctx, ast.Load)]
    parents = [file.parent(use) for use in uses]
    if not all(isinstance(parent, ast.Attribute) and parent.attr in _KNOWN for parent in parents):
        return ""
    return f"flash_attn as {name}" if name != "flash_attn" else name
