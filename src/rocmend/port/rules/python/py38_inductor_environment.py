"""Inductor's autotuning, switched on through the environment.

## What it does

Finds `TORCHINDUCTOR_MAX_AUTOTUNE` and its variants set to 1 by a program.

## Why it matters

The variable makes every mode tune as `max-autotune` does: on ROCm a first run then takes so long that it is taken for
a hang.

## Use instead

0 on ROCm.

## Fix safety

Safe: it changes how code is chosen, not what is computed.

## References

- `torch._inductor.config` of torch 2.13, which reads the variable
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.environment import settings
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = ("TORCHINDUCTOR_MAX_AUTOTUNE", "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE", "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM")


@rule(
    "PY38",
    "TORCHINDUCTOR_MAX_AUTOTUNE set",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"TORCHINDUCTOR_MAX_AUTOTUNE",),
    sources=("torch._inductor.config, torch 2.13",),
    valid=('import os\n\nos.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "0"\n',),
    invalid=(
        Case(
            'import os\n\nos.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "1"\n',
            "import os\n\nfrom package._rocm import is_rocm\n\n"
            'os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "0" if is_rocm else "1"\n',
        ),
    ),
)
def inductor_environment(file: PythonFile) -> Iterable[Found]:
    """Find the variables where they are surely on."""
    for setting in settings(file, *_NAMES):
        if file.values(setting.value) == ({"1"}, True) and file.side(setting.value) is not Side.CUDA:
            yield gated(
                file,
                setting.value,
                expression_gate(file, setting.value, '"0"'),
                message=f"{setting.name}=1 makes every mode tune, which on ROCm is taken for a hang",
                remedy="Leave it off on ROCm.",
            )
