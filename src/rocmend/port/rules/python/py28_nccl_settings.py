"""NCCL settings that RCCL does not have.

## What it does

Finds variables of NCCL for NVLink SHARP and for protocols that RCCL lacks, set in the environment.

## Why it matters

RCCL reads NCCL's variables, but ignores those for NVLink: a program tuned with them is untuned on ROCm.

## Use instead

RCCL's own settings, measured there.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html>
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

_NAMES = ("NCCL_NVLS_ENABLE", "NCCL_P2P_LEVEL", "NCCL_SHARP_ENABLE", "NCCL_COLLNET_ENABLE", "NCCL_MNNVL_ENABLE")


@rule(
    "PY28",
    "NCCL setting without effect on ROCm",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"NCCL_",),
    sources=("https://rocm.docs.amd.com/projects/rccl/en/latest/api-reference/env-variables.html",),
    valid=("import os\n\nos.environ['NCCL_DEBUG'] = 'INFO'\n",),
    invalid=(Case("import os\n\nos.environ['NCCL_NVLS_ENABLE'] = '0'\n", None),),
    once=True,
)
def nccl_settings(file: PythonFile) -> Iterable[Found]:
    """Find the variables."""
    for setting in settings(file, *_NAMES):
        if file.side(setting.node) is not Side.CUDA:
            yield told(
                file,
                setting.node,
                f"{setting.name} is for NVIDIA's interconnect: RCCL ignores it or interprets it differently",
                outcome=Outcome.NOTE,
            )
