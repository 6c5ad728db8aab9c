"""Optional NVIDIA-only libraries.

## What it does

Finds imports of `xformers`, `transformer_engine`, `apex` and `tensorrt` that are unconditional. Within a function it
is a note: the file can be imported, and a later failure explains itself.

## Why it matters

The packages on PyPI are for CUDA. xformers, Transformer Engine and apex have builds for ROCm, which are installed
from AMD's sources; TensorRT has none.

## Use instead

`None` instead on ROCm, if the file tests for it; else PyTorch's own functions, or the builds for ROCm.

## Fix safety

A suggestion: the name is defined, but code that uses it must not run on ROCm.

## References

- <https://github.com/ROCm/xformers>
- <https://github.com/ROCm/TransformerEngine>
- <https://github.com/ROCm/apex>
- <https://rocm.docs.amd.com/projects/AMDMIGraphX/en/latest/>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated, told
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import statement_gate
from rocmend.port.python.imported import imports_of, optional, unless_own, without
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_INSTEAD = {
    "xformers": "scaled_dot_product_attention, or xformers built from ROCm/xformers",
    "transformer_engine": "torch.nn, or Transformer Engine built from ROCm/TransformerEngine",
    "apex": "torch.optim and torch.nn, or apex built from ROCm/apex",
    "tensorrt": "torch.compile, or MIGraphX (torch_migraphx)",
    "torch_tensorrt": "torch.compile, or MIGraphX (torch_migraphx)",
}


@rule(
    "PY20",
    "import of an NVIDIA-only library",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"xformers", b"transformer_engine", b"apex", b"tensorrt"),
    sources=(
        "https://github.com/ROCm/xformers",
        "https://github.com/ROCm/TransformerEngine",
        "https://github.com/ROCm/apex",
    ),
    valid=(
        "try:\n    import xformers\nexcept Exception:\n    xformers = None\n",
        "from .apex import optimizers\n",
        "import importlib.util\n\nif importlib.util.find_spec('apex'):\n    import apex\n",
    ),
    invalid=(
        Case(
            "import torch\nfrom apex.optimizers import FusedAdam\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nif is_rocm:\n    FusedAdam = None\n"
            "else:\n    from apex.optimizers import FusedAdam\n",
        ),
        Case("import xformers.ops\n", None),
        Case("def export(model):\n    import torch_tensorrt\n\n    return torch_tensorrt.compile(model)\n", None),
    ),
)
def cuda_libraries(file: PythonFile) -> Iterable[Found]:
    """Find imports that are not guarded."""
    for node, library in imports_of(file, *_INSTEAD):
        if optional(file, node) or file.side(node) is Side.CUDA:
            continue
        empty = without(node)
        message = f"{library} from PyPI supports NVIDIA GPUs only: the import fails on ROCm"
        remedy = f"On ROCm, use {_INSTEAD[library]}."
        if _in_function(file, node):  # what fails is the call; `None` would fail later, and say less
            found = told(file, node, f"{message} when this is called", outcome=Outcome.NOTE, remedy=remedy)
        else:
            found = gated(
                file, node, statement_gate(file, node, empty) if empty else (), message=message, remedy=remedy
            )
        yield found._replace(unless=unless_own(library))


def _in_function(file: PythonFile, node: ast.AST) -> bool:
    around = file.parent(node)
    while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        around = file.parent(around)
    return around is not None
