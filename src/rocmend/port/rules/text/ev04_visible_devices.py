"""NVIDIA GPU UUIDs in the environment.

## What it does

Finds scripts, images and settings in which `CUDA_VISIBLE_DEVICES` holds identifiers such as `GPU-…` and `MIG-…`.

## Why it matters

HIP reads the variable like `HIP_VISIBLE_DEVICES`, and indices work as on CUDA: they need no change. UUIDs are
NVIDIA's; no AMD GPU matches, and the program sees no GPU.

## Use instead

Indices, or the `Uuid` that `rocminfo` prints, in `ROCR_VISIBLE_DEVICES`.

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
    "CUDA_VISIBLE_DEVICES with NVIDIA UUIDs",
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
            message = "CUDA_VISIBLE_DEVICES contains an NVIDIA GPU UUID."
            yield note(place, message, "Select GPUs by index on ROCm.")
