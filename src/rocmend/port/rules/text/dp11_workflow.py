"""CUDA in a CI workflow.

## What it does

Finds actions that install CUDA's toolkit, and variables and matrices of CUDA releases, in GitHub's and GitLab's
workflows.

## Why it matters

CUDA builds in CI do not show whether the port still builds.

## Use instead

A separate ROCm job, in an image with ROCm's compilers (`rocm/dev-ubuntu-…`): compiling needs no AMD GPU. `rocmend
port verify` needs no ROCm at all up to its third level.

## Fix safety

Nothing is rewritten: an added workflow would run.

## References

- <https://hub.docker.com/r/rocm/dev-ubuntu-22.04>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_ACTION = re.compile(r"[\w.-]+/[\w./-]*cuda[\w./-]*@", re.IGNORECASE)
_KEY = re.compile(r"cuda(?:[-_]?versions?)?\Z", re.IGNORECASE)
_APT = re.compile(r"(?:cuda(?:-toolkit|-nvcc|-compiler|-libraries)?(?:-dev)?(?:-[0-9]+)*|nvidia-cuda-toolkit)\Z")


@rule(
    "DP11",
    "CUDA in a CI workflow",
    Language.TEXT,
    severity=Severity.ADVICE,
    outcome=Outcome.NOTE,
    triggers=(b"cuda", b"CUDA", b"Cuda"),
    paths=paths(Kind.WORKFLOW),
    sources=("https://hub.docker.com/r/rocm/dev-ubuntu-22.04",),
    valid=("jobs:\n  a:\n    steps:\n      - run: echo cuda\n      # - uses: a/cuda-toolkit@v1\n",),
    invalid=(
        Case("jobs:\n  a:\n    steps:\n      - uses: Jimver/cuda-toolkit@v0.2.16\n", None, ".github/workflows/a.yml"),
        Case(
            "jobs:\n  a:\n    strategy:\n      matrix:\n        cuda-version: ['12.4']\n",
            None,
            ".github/workflows/a.yml",
        ),
        Case(
            "jobs:\n  a:\n    steps:\n      - run: sudo apt-get install -y cuda-toolkit-12-4\n", None, ".gitlab-ci.yml"
        ),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what installs or chooses CUDA."""
    remedy = "Add a job for ROCm, in an image with ROCm's compilers."
    for entry in file.yaml:
        if entry.key == "uses" and _ACTION.match(entry.value):
            yield note((entry.start, entry.end), f"{entry.value.partition('@')[0]} installs the CUDA toolkit.", remedy)
        elif _KEY.match(entry.key) and "matrix" in entry.keys:
            place = (entry.key_start, entry.key_start + len(entry.key))
            yield note(place, "The workflow builds for CUDA releases only.", remedy)
    for command in file.commands:
        words = [word.value for word in command.words]
        if "install" not in words or not {"apt", "apt-get", "dnf", "yum"}.intersection(words):
            continue
        for word in command.arguments:
            if _APT.match(word.value):
                yield note((word.start, word.end), f"{word.value} is a CUDA toolkit package.", remedy)
