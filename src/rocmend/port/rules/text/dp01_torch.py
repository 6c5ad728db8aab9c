"""PyTorch among the packages to install.

## What it does

Finds torch, torchvision, torchaudio and triton in lists of requirements, project metadata and install commands. What
comes from an index for ROCm is right as it is: by an option, by `PIP_INDEX_URL` and its like, or by a `+rocm` version.

## Why it matters

The wheels of the default index are for CUDA. An install that asks for `torch==2.7.1` where `2.7.1+rocm…` is not what is
installed replaces the ROCm build with one for CUDA, and says so in one line among hundreds. From then on
`torch.cuda.is_available()` is false and everything runs on the CPU.

## Use instead

Install the ROCm build first, from the index that serves it, and leave torch out of every install that follows. For
`requirements.txt` a list without it is written as `requirements-rocm.txt`. A project's own metadata stays as it is:
install the project with `--no-deps`, and what it needs by the install plan, then ask
`python -c "import torch; print(torch.version.hip)"`.

## Fix safety

Safe for lists of requirements and shell scripts: the original list is not touched, and the list for ROCm only lacks
lines. In Dockerfiles the rewrite is a suggestion, because the base image must bring torch.

## References

- <https://pytorch.org/get-started/locally/>
- <https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers>
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import labelled_build
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.indexes import Serves, serves
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.leave import KINDS, dependencies, left_out, pinned
from rocmend.port.build.packages import Role
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_OF_CPU = re.compile(r"/whl/(?:nightly/|test/)?cpu\b|%2Bcpu|\+cpu\b")
"""What says that a list is for machines without a GPU: documentation, tests, CI."""


@lru_cache(maxsize=4)
def _of_cpu(file: TextFile, start: int, end: int) -> bool:
    return "/whl/cpu" in file.text[start:end]


@rule(
    "DP01",
    "PyTorch that is not a ROCm build",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"torch", b"triton"),
    paths=paths(*KINDS),
    sources=("https://pytorch.org/get-started/locally/",),
    valid=(
        "numpy==1.26\n# torch==2.1.0\npytorch-lightning\n",
        "--index-url https://example.org/whl/rocm6.4\ntorch==2.8.0\n",
        "--extra-index-url https://example.org/whl/rocm6.4\ntorch==2.8.0\n",
        "torch==2.8.0+rocm6.4\n",
    ),
    invalid=(
        Case(
            "numpy>=1.26\ntorch==2.7.1\ntorchvision>=0.22  # transforms\n",
            "numpy>=1.26\n"
            "# ROCm: torch comes from its ROCm index, before everything else\n# torch==2.7.1\n"
            "# ROCm: torchvision comes from its ROCm index, before everything else\n"
            "# torchvision>=0.22  # transforms\n",
            "requirements.txt",
        ),
        Case(
            "torch==2.7.1 \\\n    --hash=sha256:aa\nnumpy==2.0 \\\n    --hash=sha256:bb\n",
            "# ROCm: torch comes from its ROCm index, before everything else\n"
            "# torch==2.7.1 \\\n    # --hash=sha256:aa\nnumpy==2.0 \\\n    --hash=sha256:bb\n",
            "requirements/base.txt",
        ),
        Case(
            'set -e\npip install "torch==2.7.1" numpy\necho done\n',
            'set -e\nif [ -n "${USE_ROCM:-}" ]; then\n  pip install numpy\nelse\n'
            '  pip install "torch==2.7.1" numpy\nfi\necho done\n',
            "install.sh",
        ),
        Case(
            "python -m pip install torch==2.7.1 torchvision --index-url https://example.org/whl/cu128\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  true\nelse\n'
            "  python -m pip install torch==2.7.1 torchvision --index-url https://example.org/whl/cu128\n"
            "fi\n",
            "install.sh",
        ),
        Case(
            "FROM python:3.12\nRUN apt-get update && \\\n    # the framework\n    pip install torch==2.7.1 einops\n",
            "FROM python:3.12\nRUN apt-get update && \\\n    # the framework\n    pip install einops\n",
            "Dockerfile",
        ),
        Case("--index-url https://example.org/whl/cpu\ntorch==2.7.1\nsphinx\n", None, "docs/requirements.txt"),
        Case("pip install torch --extra-index-url https://example.org/whl/rocm6.4\n", None, "install.sh"),
        Case('[project]\nname = "a"\ndependencies = ["numpy", "torch==2.7.1"]\n', None, "pyproject.toml"),
        Case('[project]\nname = "a"\ndependencies = ["torch==2.6.0+cu124"]\n', None, "pyproject.toml"),
        Case("[options]\ninstall_requires =\n    numpy\n    torch>=2.1,<2.2\n", None, "setup.cfg"),
        Case("jobs:\n  test:\n    steps:\n      - run: pip install torch==2.7.1\n", None, ".github/workflows/test.yml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield requirements of PyTorch's own packages."""
    for dependency in dependencies(file, Role.TORCH):
        name = dependency.name
        if serves(file, dependency) is Serves.BOTH:
            message = f"{name} is the default index's CUDA build if that is a newer release than the ROCm index's."
            remedy = "Use only the ROCm index for it (--index-url), or require a release that the ROCm index has."
            yield note((dependency.start, dependency.end), message, remedy, Severity.WARNING)
            continue
        if file.kind is Kind.REQUIREMENTS and _OF_CPU.search(file.text):
            message = f"{name} is a build for the CPU, as the whole list is: it is none of those that ROCm needs."
            yield note((dependency.start, dependency.end), message, "On ROCm do not install it.", Severity.INFO)
            continue
        held = pinned(dependency)
        command = file.command_at(dependency.start)
        of_cpu = command is not None and _of_cpu(file, command.start, command.end)
        labelled = labelled_build(dependency.version)
        builds = labelled or ("a build for the CPU" if of_cpu else "the default index's CUDA build")
        message = (
            f"{name}{dependency.version} replaces a ROCm build with {builds}."
            if held
            else f"{name} is {builds}, unless a ROCm build is installed first."
        )
        why = f"{name} comes from its ROCm index, before everything else"
        severity = Severity.ERROR if held else Severity.WARNING
        yield left_out(file, dependency, message, why, severity=severity)
