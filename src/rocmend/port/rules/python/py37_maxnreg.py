"""A register limit that Triton's AMD backend does not support.

## What it does

Finds `maxnreg` in `triton.Config`.

## Why it matters

Triton's AMD backend has no such option: a launch with it raises `KeyError`.

## Use instead

None, the default; on AMD `waves_per_eu` limits registers.

## Fix safety

Safe: the option is a limit for the compiler and changes nothing that is computed.

## References

- `triton.runtime.autotuner.Config.all_kwargs` and `triton.backends.amd.compiler.HIPOptions`, Triton 3.9
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY37",
    "maxnreg in a Triton configuration",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"maxnreg",),
    sources=("triton.runtime.autotuner.Config and triton.backends.amd.compiler.HIPOptions, Triton 3.9",),
    valid=("import triton\n\nc = triton.Config({}, maxnreg=None)\n",),
    invalid=(
        Case(
            "import triton\n\nc = triton.Config({}, num_warps=8, maxnreg=128)\n",
            "import triton\n\nfrom package._rocm import is_rocm\n\n"
            "c = triton.Config({}, num_warps=8, maxnreg=None if is_rocm else 128)\n",
        ),
    ),
)
def maxnreg(file: PythonFile) -> Iterable[Found]:
    """Find limits that may be other than None."""
    for call in file.on_rocm_calls("triton.Config"):
        for argument in file.arguments(call, "maxnreg", 4):
            if file.values(argument.value) != ({None}, True):
                yield gated(
                    file,
                    argument.value,
                    expression_gate(file, argument.value, "None"),
                    message="Triton's AMD backend has no maxnreg: the launch raises KeyError",
                    remedy="Leave it out on ROCm.",
                    outcome=Outcome.SUGGEST if argument.shared else None,
                )
