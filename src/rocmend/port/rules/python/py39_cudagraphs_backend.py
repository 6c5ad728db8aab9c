"""Compiling with the `cudagraphs` backend.

## What it does

Finds `torch.compile(…, backend="cudagraphs")`.

## Why it matters

The backend only captures graphs, which is slow and unreliable on ROCm.

## Use instead

`"inductor"` on ROCm, which fuses and captures nothing in its default mode.

## Fix safety

A suggestion: it compiles in another way, with other compile times.

## References

- `torch._dynamo.list_backends`, torch 2.13
- <https://github.com/pytorch/pytorch/issues/187715>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY39",
    'torch.compile with backend="cudagraphs"',
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"cudagraphs",),
    sources=("torch._dynamo.list_backends, torch 2.13", "https://github.com/pytorch/pytorch/issues/187715"),
    valid=('import torch\n\nf = torch.compile(f, backend="inductor")\n',),
    invalid=(
        Case(
            'import torch\n\nf = torch.compile(f, backend="cudagraphs")\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            'f = torch.compile(f, backend="inductor" if is_rocm else "cudagraphs")\n',
        ),
    ),
)
def cudagraphs_backend(file: PythonFile) -> Iterable[Found]:
    """Find calls with that back end."""
    for call in file.on_rocm_calls("torch.compile"):
        for argument in file.arguments(call, "backend", 3):
            if file.values(argument.value) == ({"cudagraphs"}, True) and file.side(argument.value) is not Side.CUDA:
                yield gated(
                    file,
                    argument.value,
                    expression_gate(file, argument.value, '"inductor"'),
                    message="the cudagraphs backend only captures graphs",
                    remedy='Compile with backend="inductor" on ROCm.',
                )
