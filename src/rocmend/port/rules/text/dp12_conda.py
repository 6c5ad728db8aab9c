"""CUDA in a conda environment.

## What it does

Finds packages of CUDA, PyTorch's conda packages and NVIDIA's channel in environment files and `conda install` commands.

## Why it matters

Conda channels lack pytorch.org's ROCm builds and resolve to CUDA builds.

## Use instead

Conda for Python and CPU packages; PyTorch with pip, from its ROCm index. The environment without CUDA is written next
to the original.

## Fix safety

A suggestion: PyTorch must be installed in the environment afterwards.

## References

- <https://pytorch.org/get-started/locally/>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import Where, of_command
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import commented, rewrite
from rocmend.port.build.indexes import settles
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.packages import Role, known
from rocmend.port.build.shell import Command
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_REMEDY = "Install PyTorch with pip from its ROCm index, and no CUDA packages."


@rule(
    "DP12",
    "CUDA in a conda environment",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"cuda", b"torch", b"nvidia", b"cudnn", b"nccl", b"triton"),
    paths=paths(Kind.CONDA, Kind.SHELL, Kind.DOCKERFILE, Kind.MAKE, Kind.WORKFLOW),
    sources=("https://pytorch.org/get-started/locally/",),
    valid=(
        "dependencies:\n  - python=3.12\n  # - cudatoolkit=11.3\n",
        "channels:\n  - https://example.org/conda/rocm\ndependencies:\n  - pytorch\n",
    ),
    invalid=(
        Case(
            "channels:\n  - pytorch\n  - nvidia\n  - conda-forge\ndependencies:\n  - python=3.10\n  - pytorch=2.1\n"
            "  - pytorch-cuda=12.1\n  - pip\n",
            "channels:\n  # ROCm: packages for CUDA\n  # - pytorch\n  # ROCm: packages for CUDA\n  # - nvidia\n"
            "  - conda-forge\n"
            "dependencies:\n  - python=3.10\n  # ROCm: pytorch comes from pip, from its ROCm index\n  # - pytorch=2.1\n"
            "  # ROCm: pytorch-cuda is for CUDA\n  # - pytorch-cuda=12.1\n  - pip\n",
            "environment.yml",
        ),
        Case(
            "conda install -y cudatoolkit=11.8\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  true\nelse\n  conda install -y cudatoolkit=11.8\nfi\n',
            "install.sh",
        ),
        Case("conda install pytorch numpy -c pytorch\n", None, "install.sh"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what brings CUDA into an environment."""
    for entry in file.yaml:
        if file.kind is Kind.CONDA and entry.keys[:1] == ("channels",) and entry.value in {"nvidia", "pytorch"}:
            line = file.lines.all[entry.line]
            edits = commented(file, line.start, line.end, "packages for CUDA")
            message = f"The channel {entry.value} provides CUDA packages."
            outcome = Outcome.SUGGEST
            yield rewrite(file, (entry.start, entry.end), message, edits, remedy=_REMEDY, outcome=outcome)
    channels = tuple(entry.value for entry in file.yaml if entry.keys[:1] == ("channels",))
    told: set[int] = set()
    decided: dict[int, tuple[bool, tuple[Edit, ...]]] = {}  # a command may install thousands of packages
    for dependency in file.dependencies:
        package = known(dependency.name)
        if dependency.where is not Where.CONDA or package is None or package.role not in {Role.TORCH, Role.CUDA}:
            continue
        torch = package.role is Role.TORCH
        listed = file.kind is Kind.CONDA
        command = None if listed else file.command_at(dependency.start)
        at = -1 if command is None else command.start
        if at not in decided:
            decided[at] = settles(file, channels, dependency.start), _alone(command)
        served, without = decided[at]
        if torch and served:
            continue
        why = f"{dependency.name} {'comes from pip, from its ROCm index' if torch else 'is for CUDA'}"
        edits = commented(file, *dependency.whole, why) if listed else without
        if command is not None and not edits:
            if command.start in told:
                continue  # one command is one place for a person
            told.add(command.start)
        message = f"{dependency.name}: {package.note}"
        place = (dependency.start, dependency.end)
        yield rewrite(
            file,
            place,
            message,
            edits,
            remedy=_REMEDY,
            outcome=Outcome.SUGGEST,
            otherwise=Outcome.NOTE if file.kind is Kind.WORKFLOW else Outcome.MANUAL,
        )


def _alone(command: Command | None) -> tuple[Edit, ...]:
    """Return edits that leave out a command which installs nothing but CUDA; empty where it installs other things."""
    if command is None:
        return ()
    packages = [known(one.name) for one in of_command(command)]
    if all(package is not None and package.role is Role.CUDA for package in packages):
        return (Edit(command.start, command.end, b"true"),)
    return ()
