"""GPUs named by NVIDIA's identifiers in the environment.

## What it does

Finds scripts, images and settings in which `CUDA_VISIBLE_DEVICES` holds identifiers such as `GPU-…` and `MIG-…`.

## Why it matters

HIP reads the variable as it reads `HIP_VISIBLE_DEVICES`, and numbers mean on ROCm what they mean on CUDA: there is
nothing to do. The identifiers are NVIDIA's; no AMD GPU has them, and the program sees none.

## Use instead

Numbers, or what `rocminfo` says of a GPU as `Uuid`, in `ROCR_VISIBLE_DEVICES`.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html>
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
    "CUDA_VISIBLE_DEVICES with NVIDIA's identifiers",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.NOTE,
    triggers=(b"CUDA_VISIBLE_DEVICES",),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html",),
    valid=(
        "export HIP_VISIBLE_DEVICES=0\necho $CUDA_VISIBLE_DEVICES\n",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun train.py\n",
    ),
    invalid=(
        Case("CUDA_VISIBLE_DEVICES='GPU-8932f937' torchrun train.py\n", None, "run.sh"),
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
            yield note(place, message, "Choose GPUs by their number for ROCm.")
