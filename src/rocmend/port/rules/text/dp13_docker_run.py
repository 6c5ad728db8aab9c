"""`docker run` with NVIDIA GPUs.

## What it does

Finds `docker run --gpus …`, `--runtime=nvidia` and `nvidia-docker` in scripts, Makefiles and workflows.

## Why it matters

They require NVIDIA's container toolkit, and fail without it.

## Use instead

`--device=/dev/kfd --device=/dev/dri --group-add video --group-add render`.

## Fix safety

A suggestion: all GPUs of the machine are given to the container.

## References

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite, without
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.shell import Command
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_DEVICES = b"--device=/dev/kfd --device=/dev/dri --group-add video --group-add render"


@rule(
    "DP13",
    "docker run with NVIDIA GPUs",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"--gpus", b"nvidia"),
    paths=paths(Kind.SHELL, Kind.MAKE, Kind.WORKFLOW),
    sources=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",),
    valid=("docker run --rm image train --epochs 3\n# docker run --gpus all image\n",),
    invalid=(
        Case(
            "docker run --rm --gpus all --shm-size 8g image\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n'
            "  docker run --rm --device=/dev/kfd --device=/dev/dri --group-add video --group-add render "
            "--shm-size 8g image\n"
            "else\n  docker run --rm --gpus all --shm-size 8g image\nfi\n",
            "run.sh",
        ),
        Case(
            "docker run --runtime=nvidia --gpus=2 image\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n'
            "  docker run --device=/dev/kfd --device=/dev/dri --group-add video --group-add render image\n"
            "else\n  docker run --runtime=nvidia --gpus=2 image\nfi\n",
            "run.sh",
        ),
        Case("jobs:\n  a:\n    steps:\n      - run: docker run --gpus all image\n", None, ".github/workflows/a.yml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that start a container with NVIDIA GPUs."""
    for command in file.commands:
        docker = command.name in {"docker", "podman", "nvidia-docker"} or "docker" in [
            one.value for one in command.words[:2]
        ]
        if not docker or command.settled:
            continue
        edits = _edits(file, command)
        if edits or command.name == "nvidia-docker":
            yield rewrite(
                file,
                (command.start, command.end),
                "The container is started with NVIDIA's container toolkit.",
                edits,
                remedy="Start it with --device=/dev/kfd --device=/dev/dri and the groups video and render for ROCm.",
                outcome=Outcome.SUGGEST,
                otherwise=Outcome.NOTE if file.kind is Kind.WORKFLOW else Outcome.MANUAL,
            )


def _edits(file: TextFile, command: Command) -> tuple[Edit, ...]:
    edits: list[Edit] = []
    given = False
    words = command.words
    for number, word in enumerate(words):
        name, _, value = word.value.partition("=")
        if name not in {"--gpus", "--runtime"} or (
            name == "--runtime" and (value or _next(command, number)) != "nvidia"
        ):
            continue
        end = word.end if value else words[min(number + 1, len(words) - 1)].end
        if given:
            edits.append(without(file, word.start, end))
        else:
            edits.append(Edit(word.start, end, _DEVICES))
        given = True
    return tuple(edits)


def _next(command: Command, number: int) -> str:
    return command.words[number + 1].value if number + 1 < len(command.words) else ""
