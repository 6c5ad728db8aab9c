"""NVIDIA architectures for extensions.

## What it does

Finds where a program sets `TORCH_CUDA_ARCH_LIST`.

## Why it matters

On ROCm PyTorch builds extensions for `PYTORCH_ROCM_ARCH`, else for every target that it was built for; it does not
read the other variable.

## Use instead

`PYTORCH_ROCM_ARCH` with the gfx targets to build for.

## Fix safety

Nothing is rewritten.

## References

- `torch.utils.cpp_extension`, torch 2.13
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.environment import settings
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY40",
    "TORCH_CUDA_ARCH_LIST set",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"TORCH_CUDA_ARCH_LIST",),
    sources=("torch.utils.cpp_extension, torch 2.13",),
    valid=(
        "import os\n\nprint(os.environ.get('TORCH_CUDA_ARCH_LIST'))\n",
        "import os\n\nkept = os.environ.get('TORCH_CUDA_ARCH_LIST')\nos.environ['TORCH_CUDA_ARCH_LIST'] = kept\n",
    ),
    invalid=(Case("import os\n\nos.environ['TORCH_CUDA_ARCH_LIST'] = '8.0'\n", None),),
    once=True,
)
def arch_list(file: PythonFile) -> Iterable[Found]:
    """Find where it is set."""
    for setting in settings(file, "TORCH_CUDA_ARCH_LIST"):
        if file.side(setting.node) is not Side.CUDA and not _restores(file, setting.value):
            yield told(
                file, setting.node, "on ROCm extensions are built for PYTORCH_ROCM_ARCH instead", outcome=Outcome.NOTE
            )


def _restores(file: PythonFile, value: ast.expr) -> bool:
    """Whether a value is what the variable was before."""
    found = file.scope(value).lookup(value.id) if isinstance(value, ast.Name) else None
    return found is not None and any(
        one.value is not None and ("environ" in (text := file.source(one.value)) or "getenv" in text)
        for one in found[1]
    )
