"""CUDA folder in search paths.

## What it does

Finds variables that are set to `/usr/local/cuda` or a folder within it: `CUDA_HOME`, `PATH`, `LD_LIBRARY_PATH` and
others.

## Why it matters

On a ROCm machine the folder is missing; if it exists, a build finds CUDA headers and libraries first.

## Use instead

`/opt/rocm`, whose libraries are in `lib`. Where ROCm was installed as Python packages, `rocm-sdk path --root` says
where.

## Fix safety

A suggestion: where ROCm is installed differs from machine to machine.

## References

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/post-install.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.variables import KINDS
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_FOLDER = re.compile(
    r"/usr/local/cuda(?:-[0-9.]+)?(?=[/:\s\"']|$)(?!/bin/\w)(/lib64(?:/stubs)?|/extras/CUPTI/lib64|/compat)?"
)


@rule(
    "EV07",
    "CUDA folder in a search path",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"/usr/local/cuda",),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/post-install.html",),
    valid=(
        "export PATH=/opt/rocm/bin:$PATH\n# export CUDA_HOME=/usr/local/cuda\n",
        "export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas\n",
    ),
    invalid=(
        Case(
            "export CUDA_HOME=/usr/local/cuda\nexport LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64:$LD_LIBRARY_PATH\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  export CUDA_HOME=/opt/rocm\n'
            "  export LD_LIBRARY_PATH=/opt/rocm/lib:$LD_LIBRARY_PATH\nelse\n"
            "  export CUDA_HOME=/usr/local/cuda\n"
            "  export LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64:$LD_LIBRARY_PATH\nfi\n",
            "run.sh",
        ),
        Case(
            "CUDA_HOME ?= /usr/local/cuda\nall:\n\techo\n",
            "ifdef USE_ROCM\nCUDA_HOME ?= /opt/rocm\nelse\nCUDA_HOME ?= /usr/local/cuda\nendif\nall:\n\techo\n",
            "Makefile",
        ),
        Case("env:\n  CUDA_HOME: /usr/local/cuda\n", None, "job.yaml"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield variables that name the folder."""
    for setting in file.settings:
        matches = list(_FOLDER.finditer(file.text, setting.start, setting.end))
        if not matches or setting.settled:
            continue
        edits = tuple(Edit(*match.span(), b"/opt/rocm/lib" if match.group(1) else b"/opt/rocm") for match in matches)
        yield rewrite(
            file,
            (setting.name_start, setting.end),
            f"{setting.name} points to the CUDA folder.",
            edits,
            remedy="On ROCm use /opt/rocm, or the folder that `rocm-sdk path --root` prints.",
            outcome=Outcome.SUGGEST,
            otherwise=Outcome.NOTE if file.kind in {Kind.YAML, Kind.WORKFLOW, Kind.JSON, Kind.TOML} else Outcome.MANUAL,
        )
