"""Packages of CUDA libraries.

## What it does

Finds `nvidia-cublas-cu12`, `nvidia-nccl-cu12`, `jax-cuda12-plugin` and others that contain only CUDA libraries.

## Why it matters

They belong to the CUDA build of PyTorch or JAX. Next to a ROCm build they waste gigabytes, and pinned versions can
force a CUDA torch.

## Use instead

Nothing: ROCm's libraries come with ROCm or with the ROCm build of PyTorch. For `requirements.txt` a list without them
is written as `requirements-rocm.txt`.

## Fix safety

Safe: no program imports these packages by name, and the original list is not touched.

## References

- <https://pypi.org/project/nvidia-cublas-cu12/>
- <https://rocm.docs.amd.com/en/latest/reference/api-libraries.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import paths
from rocmend.port.build.leave import KINDS, dependencies, left_out
from rocmend.port.build.packages import Role
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP03",
    "Package of CUDA libraries",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"nvidia", b"cuda", b"cudnn"),
    paths=paths(*KINDS),
    sources=("https://pypi.org/project/nvidia-cublas-cu12/",),
    valid=("nvidia-ml-py\nnumpy\n# nvidia-cublas-cu12\n",),
    invalid=(
        Case(
            "numpy\nnvidia-cublas-cu12==12.4.5.8\n",
            "numpy\n# ROCm: nvidia-cublas-cu12 contains CUDA libraries\n# nvidia-cublas-cu12==12.4.5.8\n",
            "requirements.txt",
        ),
        Case("[project]\nname = 'a'\ndependencies = ['nvidia-nccl-cu12']\n", None, "pyproject.toml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield requirements of packages that hold CUDA's libraries."""
    for dependency in dependencies(file, Role.CUDA):
        message = f"{dependency.name} contains CUDA libraries, which AMD GPUs do not use."
        why = f"{dependency.name} contains CUDA libraries"
        yield left_out(file, dependency, message, why, severity=Severity.WARNING)
