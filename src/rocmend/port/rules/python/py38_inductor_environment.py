"""Inductor's tuning, graphs or memory planning, enabled by environment variables.

## What it does

Finds `TORCHINDUCTOR_MAX_AUTOTUNE` and its variants, and the variables for coordinate descent, CUDA graphs and memory
planning, set to 1 by a program.

## Why it matters

The variable makes every mode autotune like `max-autotune`: on ROCm a first run then takes so long that it looks like
a hang. For CUDA graphs and memory planning see PY04 and PY05.

## Use instead

`0` on ROCm.

## Fix safety

Safe: they change how code is chosen and launched, not what is computed.

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

_NAMES = {
    "TORCHINDUCTOR_MAX_AUTOTUNE": "makes every mode autotune, which looks like a hang on ROCm",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE": "makes every mode autotune, which looks like a hang on ROCm",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM": "makes every mode autotune, which looks like a hang on ROCm",
    "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "makes every mode autotune, which looks like a hang on ROCm",
    "TORCHINDUCTOR_CUDAGRAPHS": "makes Inductor capture graphs, which is slow and unreliable on ROCm",
    "TORCHINDUCTOR_MEMORY_PLANNING": "makes Inductor plan memory, which was reported to crash on ROCm",
}


@rule(
    "PY38",
    "Inductor's tuning or graphs set in the environment",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=tuple(name.encode() for name in _NAMES),
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
                message=f"{setting.name}=1 {_NAMES[setting.name]}",
                remedy="Leave it off on ROCm.",
            )
