"""`CUDA_LAUNCH_BLOCKING` in the environment.

## What it does

Finds scripts, images and settings that set `CUDA_LAUNCH_BLOCKING`.

## Why it matters

HIP does not read it. A run that should stop at the failing kernel continues to a later call, and the traceback points
there.

## Use instead

`AMD_SERIALIZE_KERNEL=3`, which waits before and after every kernel.

## Fix safety

Safe: both variables only make a program wait.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/debugging.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import paths
from rocmend.port.build.variables import KINDS, renamed
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "EV03",
    "CUDA_LAUNCH_BLOCKING is set",
    Language.TEXT,
    severity=Severity.ADVICE,
    outcome=Outcome.AUTO,
    triggers=(b"CUDA_LAUNCH_BLOCKING",),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/debugging.html",),
    valid=("export CUDA_LAUNCH_BLOCKING=0\n",),
    invalid=(
        Case(
            "    CUDA_LAUNCH_BLOCKING=1 python train.py\n",
            '    if [ -n "${USE_ROCM:-}" ]; then\n'
            "      AMD_SERIALIZE_KERNEL=3 python train.py\n    else\n"
            "      CUDA_LAUNCH_BLOCKING=1 python train.py\n    fi\n",
            "run.sh",
        ),
        Case(
            "services:\n  a:\n    environment:\n      CUDA_LAUNCH_BLOCKING: 1\n",
            "services:\n  a:\n    environment:\n      AMD_SERIALIZE_KERNEL: 3\n",
            "compose.yml",
        ),
        Case("env:\n  - name: CUDA_LAUNCH_BLOCKING\n    value: '1'\n", None, "pod.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets the variable."""
    for setting in file.settings:
        if setting.name == "CUDA_LAUNCH_BLOCKING" and not setting.settled and setting.value.strip() not in {"", "0"}:
            yield rewrite(
                file,
                (setting.name_start, setting.end),
                "HIP does not read CUDA_LAUNCH_BLOCKING.",
                renamed(file, setting, "AMD_SERIALIZE_KERNEL", "3"),
                remedy="Set AMD_SERIALIZE_KERNEL=3 on ROCm.",
                otherwise=Outcome.NOTE,
            )
