"""`CUDA_VISIBLE_DEVICES` in the environment.

## What it does

Finds scripts, images and settings that choose GPUs with `CUDA_VISIBLE_DEVICES`.

## Why it matters

HIP reads it as it reads `HIP_VISIBLE_DEVICES`, and the documentation of newer releases names only the latter. Where
both are set, and differ, programs see fewer GPUs than either says. GPUs are numbered anew in the order of the list,
and `ROCR_VISIBLE_DEVICES` numbers them before that. Identifiers such as `GPU-…` and `MIG-…` are NVIDIA's.

## Use instead

`HIP_VISIBLE_DEVICES`, or `ROCR_VISIBLE_DEVICES` on Linux, where a script is for ROCm alone. For a script that serves
both, nothing.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import paths
from rocmend.port.build.variables import KINDS
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "EV04",
    "GPUs are chosen with CUDA_VISIBLE_DEVICES",
    Language.TEXT,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"CUDA_VISIBLE_DEVICES",),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html",),
    valid=("export HIP_VISIBLE_DEVICES=0\necho $CUDA_VISIBLE_DEVICES\n",),
    invalid=(
        Case("CUDA_VISIBLE_DEVICES=0,1 torchrun train.py\n", None, "run.sh"),
        Case("export CUDA_VISIBLE_DEVICES=MIG-1234\n", None, "run.sh"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets the variable."""
    for setting in file.settings:
        if setting.name != "CUDA_VISIBLE_DEVICES" or setting.settled:
            continue
        place = (setting.name_start, setting.end)
        if setting.value.strip("\"'").startswith(("GPU-", "MIG-")):
            message = "CUDA_VISIBLE_DEVICES names a GPU by NVIDIA's identifier."
            yield note(place, message, "Choose GPUs by their number for ROCm.", Severity.WARNING)
        else:
            message = "HIP reads CUDA_VISIBLE_DEVICES as HIP_VISIBLE_DEVICES; newer releases document only the latter."
            yield note(place, message)
