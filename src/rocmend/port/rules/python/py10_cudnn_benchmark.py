"""Convolutions that are benchmarked at first use.

## What it does

Finds `torch.backends.cudnn.benchmark = True`, and the same in `torch.backends.cudnn.flags`.

## Why it matters

On ROCm the setting makes MIOpen benchmark each new shape, which takes minutes at the first run and looks like a hang.

## Use instead

The default on ROCm: MIOpen's own choice, which its databases provide immediately for known shapes.

## Fix safety

A suggestion: the project chose it, and for shapes that repeat the minutes may pay off. Results stay within the
library's own accuracy either way.

## References

- <https://rocm.docs.amd.com/projects/MIOpen/en/latest/how-to/find-and-immediate.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.assigned import assigned
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.tested import looked_at
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_SWITCH = "torch.backends.cudnn.benchmark"


@rule(
    "PY10",
    "cudnn.benchmark switched on",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.SUGGEST,
    triggers=(b"cudnn",),
    sources=("https://rocm.docs.amd.com/projects/MIOpen/en/latest/how-to/find-and-immediate.html",),
    valid=(
        "import torch\n\ntorch.backends.cudnn.benchmark = False\n",
        "class A:\n    benchmark = True\n",
    ),
    invalid=(
        Case(
            "from torch.backends import cudnn\n\ncudnn.benchmark = True\n",
            "from torch.backends import cudnn\n\nfrom package._rocm import is_rocm\n\n"
            "cudnn.benchmark = False if is_rocm else True\n",
        ),
    ),
)
def cudnn_benchmark(file: PythonFile) -> Iterable[Found]:
    """Find the switch where it is surely on."""
    given = [one.value for one in assigned(file) if file.qualified(one.target) == _SWITCH]
    for call in file.calls("torch.backends.cudnn.flags"):
        given += [argument.value for argument in file.arguments(call, "benchmark", 1)]
    for value in dict.fromkeys(file.on_rocm(given)):
        if file.values(value) == ({True}, True) and not looked_at(file, value):
            yield gated(
                file,
                value,
                expression_gate(file, value, "False"),
                message="MIOpen benchmarks each new shape at first use, which takes minutes",
                remedy="Leave it off on ROCm.",
            )
