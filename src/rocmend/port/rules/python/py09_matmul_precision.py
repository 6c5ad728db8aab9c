"""A float32 precision lower than the highest.

## What it does

Finds `torch.set_float32_matmul_precision("high")` and `("medium")`.

## Why it matters

The call allows TF32 or bfloat16 inside float32 products. On ROCm it depends on the gfx target whether such a path
exists, is used, and how it rounds.

## Use instead

`"highest"` on ROCm until results were compared there.

## Fix safety

A suggestion: where supported, it is faster, and the project may tolerate its error.

## References

- <https://github.com/pytorch/pytorch/pull/193345>
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
from rocmend.port.python.tested import looked_at
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_BEFORE = re.compile(
    r"(?:^|_)(?:prev|previous|old|orig|original|saved|snap|snapshot|before|backup)(?:_|$)", re.IGNORECASE
)


@rule(
    "PY09",
    "float32 matmuls at reduced precision",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"set_float32_matmul_precision",),
    sources=("https://github.com/pytorch/pytorch/pull/193345",),
    valid=(
        'import torch\n\ntorch.set_float32_matmul_precision("highest")\n',
        (
            "import torch\n\np = torch.get_float32_matmul_precision()\nrun()\n"
            "torch.set_float32_matmul_precision(p)\ntorch.set_float32_matmul_precision(self._prev_precision)\n"
        ),
    ),
    invalid=(
        Case(
            'import torch\n\ntorch.set_float32_matmul_precision("high")\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            'torch.set_float32_matmul_precision("highest" if is_rocm else "high")\n',
        ),
    ),
)
def matmul_precision(file: PythonFile) -> Iterable[Found]:
    """Find calls with another precision than the highest."""
    for call in file.calls("torch.set_float32_matmul_precision"):
        for argument in file.arguments(call, "precision", 0):
            values, complete = file.values(argument.value)
            if (complete and values <= {"highest"}) or file.side(call.node) is Side.CUDA:
                continue
            if (not values and _put_back(file, argument.value)) or looked_at(file, call.node):
                continue
            yield gated(
                file,
                argument.value,
                expression_gate(file, argument.value, '"highest"'),
                message="float32 matmuls may use lower precision, depending on the gfx target",
                remedy='Use "highest" on ROCm.',
            )


def _put_back(file: PythonFile, value: ast.expr) -> bool:
    """Whether a value is what was in force before, by what it was bound to or is called."""
    inner = value.value if isinstance(value, ast.Subscript) else value
    name = inner.attr if isinstance(inner, ast.Attribute) else inner.id if isinstance(inner, ast.Name) else ""
    return _BEFORE.search(name) is not None or "torch.get_float32_matmul_precision" in {
        file.qualified(binding.value.func)
        for binding in ((file.scope(value).lookup(name) or (None, []))[1] if isinstance(value, ast.Name) else [])
        if isinstance(binding.value, ast.Call)
    }
