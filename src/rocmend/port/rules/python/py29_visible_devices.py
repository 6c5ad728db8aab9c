"""CUDA_VISIBLE_DEVICES.

## What it does

Finds where a program sets `CUDA_VISIBLE_DEVICES`.

## Why it matters

HIP reads it too, but `HIP_VISIBLE_DEVICES` takes precedence, and `ROCR_VISIBLE_DEVICES` renumbers the devices before
either applies: if a scheduler sets one of those, the program selects other devices, or none.

## Use instead

`HIP_VISIBLE_DEVICES` if one must be set on ROCm; never two of them.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.environment import settings
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY29",
    "CUDA_VISIBLE_DEVICES set",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"CUDA_VISIBLE_DEVICES",),
    sources=("https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html",),
    valid=("import os\n\nprint(os.environ.get('CUDA_VISIBLE_DEVICES'))\n",),
    invalid=(Case("import os\n\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", None),),
    once=True,
)
def visible_devices(file: PythonFile) -> Iterable[Found]:
    """Find where it is set."""
    for setting in settings(file, "CUDA_VISIBLE_DEVICES"):
        if setting.of_process and file.side(setting.node) is not Side.CUDA:
            yield told(
                file,
                setting.node,
                "on ROCm HIP_VISIBLE_DEVICES takes precedence, and ROCR_VISIBLE_DEVICES renumbers the devices first",
                outcome=Outcome.NOTE,
            )
