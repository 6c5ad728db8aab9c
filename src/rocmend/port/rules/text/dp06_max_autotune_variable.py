"""`TORCHINDUCTOR_MAX_AUTOTUNE` in the environment.

## What it does

Finds scripts, images and settings that set `TORCHINDUCTOR_MAX_AUTOTUNE` or one of its variants.

## Why it matters

The variable makes `mode="default"` behave as `mode="max-autotune"`, without any sign in the program. On ROCm
autotuning then takes minutes in every compile, and was reported to hang.

## Use instead

Leave it unset. Ask for `mode="max-autotune-no-cudagraphs"` in the program where autotuning pays off.

## Fix safety

Safe in scripts: only what is searched changes, not what is computed. In images it is a suggestion, for the base image
may set the variable too: `unset` it where the program starts.

## References

- <https://github.com/pytorch/pytorch/blob/main/torch/_inductor/config.py>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import paths
from rocmend.port.build.variables import KINDS, dropped
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP06",
    "TORCHINDUCTOR_MAX_AUTOTUNE is set",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"TORCHINDUCTOR_MAX_AUTOTUNE",),
    paths=paths(*KINDS),
    sources=("torch._inductor.config, torch 2.13",),
    valid=("export TORCHINDUCTOR_MAX_AUTOTUNE=0\n# TORCHINDUCTOR_MAX_AUTOTUNE=1\necho TORCHINDUCTOR_MAX_AUTOTUNE=1\n",),
    invalid=(
        Case(
            "export TORCHINDUCTOR_MAX_AUTOTUNE=1\npython train.py\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  unset TORCHINDUCTOR_MAX_AUTOTUNE\nelse\n'
            "  export TORCHINDUCTOR_MAX_AUTOTUNE=1\nfi\npython train.py\n",
            "run.sh",
        ),
        Case(
            "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM=1 python train.py\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  python train.py\nelse\n'
            "  TORCHINDUCTOR_MAX_AUTOTUNE_GEMM=1 python train.py\nfi\n",
            "run.sh",
        ),
        Case("FROM a\nENV TORCHINDUCTOR_MAX_AUTOTUNE=1\nRUN b\n", "FROM a\nRUN b\n", "Dockerfile"),
        Case(
            "FROM a\nENV A=1 \\\n    TORCHINDUCTOR_MAX_AUTOTUNE=1 \\\n    B=2\n",
            "FROM a\nENV A=1 \\\n    \\\n    B=2\n",
            "Dockerfile",
        ),
        Case(
            "services:\n  a:\n    environment:\n      - TORCHINDUCTOR_MAX_AUTOTUNE=1\n      - B=2\n",
            "services:\n  a:\n    environment:\n      # ROCm: autotuning was reported to hang\n"
            "      # - TORCHINDUCTOR_MAX_AUTOTUNE=1\n      - B=2\n",
            "compose.yml",
        ),
        Case("env:\n  TORCHINDUCTOR_MAX_AUTOTUNE: 1\n", None, "job.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what sets the variable."""
    for setting in file.settings:
        off = setting.value.strip().lower() in {"", "0", "false"}
        if not setting.name.startswith("TORCHINDUCTOR_MAX_AUTOTUNE") or off or setting.settled:
            continue
        yield rewrite(
            file,
            (setting.name_start, setting.end),
            f'{setting.name} makes mode="default" autotune like mode="max-autotune".',
            dropped(file, setting, "autotuning was reported to hang"),
            remedy=f"Leave {setting.name} unset on ROCm.",
        )
