"""A CUDA base image.

## What it does

Finds `nvidia/cuda`, `pytorch/pytorch:…cuda…`, NVIDIA's own images and others in Dockerfiles and compose files.

## Why it matters

Such an image has no ROCm, and its PyTorch is for CUDA.

## Use instead

`rocm/pytorch`, which has ROCm and a PyTorch tested with it, or `rocm/dev-ubuntu-…`, which has only ROCm. The result
is written beside the original, as `Dockerfile.rocm` or `docker-compose.rocm.yml`, with the image in a build argument
where the file is a Dockerfile. Pin it by digest once it works.

After `FROM rocm/pytorch` the Dockerfile pins pip and uv to the image's PyTorch: without that, `pip install` of a
package that needs another torch silently replaces it with the CUDA build. If pip stops there, install that package
with `--no-deps`.

## Fix safety

A suggestion: check which release of ROCm, Ubuntu and Python the project needs.

## References

- <https://hub.docker.com/r/rocm/pytorch>
- <https://hub.docker.com/r/rocm/dev-ubuntu-22.04>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note, rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_TAG = r"(?::[\w.${}-]+)?(?:@sha256:[0-9a-f]+)?"
_IMAGE = re.compile(
    rf"(?P<cuda>(?:[\w.-]+/)*nvidia/cuda(?:gl)?{_TAG})"
    rf"|(?P<torch>(?:[\w.-]+/)?pytorch/(?:pytorch|manylinux[\w-]*):[\w.${{}}-]*(?i:cuda)[\w.${{}}-]*|nvcr\.io/nvidia/pytorch{_TAG})"
    rf"|(?P<other>nvcr\.io/nvidia/[\w./-]+{_TAG}|[\w./-]+:[\w.-]*cu(?:da)?1[123][0-9.]*[\w.-]*)"
)
_UBUNTU = re.compile(r"ubuntu([0-9]{2})\.?([0-9]{2})")
_HOLD = (
    "# Nothing that is installed below may replace the image's PyTorch: pip and uv stop instead.",
    "RUN python3 -m pip list --format=freeze | grep -E '^(torch(vision|audio)?|(.*-)?triton(-rocm)?)==' > /held.txt",
    "ENV PIP_CONSTRAINT=/held.txt UV_CONSTRAINT=/held.txt",
)
_LINES = "".join(f"{line}\n" for line in _HOLD)
_FROM = re.compile(r"(?:--platform=\S+[ \t]+)?(\S+)")


@rule(
    "DP05",
    "CUDA base image",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"nvidia", b"cuda", b"cu11", b"cu12", b"cu13"),
    paths=paths(Kind.DOCKERFILE, Kind.COMPOSE, Kind.WORKFLOW, Kind.YAML),
    sources=("https://hub.docker.com/r/rocm/pytorch", "https://hub.docker.com/r/rocm/dev-ubuntu-22.04"),
    valid=("# FROM nvidia/cuda:12.1.0-devel-ubuntu22.04\nFROM python:3.12\nFROM rocm/pytorch:latest\n",),
    invalid=(
        Case(
            "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04 AS build\nRUN make\n",
            "ARG ROCM_IMAGE=rocm/dev-ubuntu-22.04:latest\nFROM ${ROCM_IMAGE} AS build\nRUN make\n",
            "Dockerfile",
        ),
        Case(
            "# syntax=docker/dockerfile:1\nARG A=1\n"
            "FROM --platform=linux/amd64 nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04\n"
            "RUN pip install torch\n",
            "# syntax=docker/dockerfile:1\nARG A=1\nARG ROCM_IMAGE=rocm/pytorch:latest\n"
            f"FROM --platform=linux/amd64 ${{ROCM_IMAGE}}\n{_LINES}RUN pip install torch\n",
            "docker/app.Dockerfile",
        ),
        Case(
            "FROM pytorch/pytorch:2.4.0-cuda12.1-cudnn9-devel as a\nRUN b\nFROM nvcr.io/nvidia/pytorch:24.05-py3\n",
            "ARG ROCM_IMAGE=rocm/pytorch:latest\n"
            f"FROM ${{ROCM_IMAGE}} as a\n{_LINES}RUN b\nFROM ${{ROCM_IMAGE}}\n{_LINES}",
            "Dockerfile",
        ),
        Case(
            "services:\n  a:\n    image: nvidia/cuda:12.1.0-base-ubuntu22.04\n",
            "services:\n  a:\n    image: rocm/dev-ubuntu-22.04:latest\n",
            "docker-compose.yml",
        ),
        Case(
            "ARG CUDA=12.4.1\nARG BASE=nvidia/cuda:${CUDA}-devel-ubuntu22.04\nFROM ${BASE}\n",
            "ARG CUDA=12.4.1\nARG BASE=rocm/dev-ubuntu-22.04:latest\nFROM ${BASE}\n",
            "Dockerfile",
        ),
        Case(
            "FROM a AS b\nRUN c\nFROM nvidia/cuda:12.4.1-base\n",
            "ARG ROCM_IMAGE=rocm/dev-ubuntu-24.04:latest\nFROM a AS b\nRUN c\nFROM ${ROCM_IMAGE}\n",
            "Dockerfile",
        ),
        Case("jobs:\n  a:\n    container: nvidia/cuda:12.1.0-base-ubuntu22.04\n", None, ".github/workflows/a.yml"),
        Case("FROM vllm/vllm-openai:v0.6-cu124\n", None, "Dockerfile"),
        Case("FROM nvcr.io/nvidia/tritonserver:24.05-py3\n", None, "Dockerfile"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield images for CUDA."""
    declared = False
    for step in file.instructions:
        named = _FROM.match(step.body) if step.keyword == "FROM" else None
        match = _IMAGE.fullmatch(named.group(1)) if named else None
        if named is None or match is None:
            continue
        start, end = step.body_start + named.start(1), step.body_start + named.end(1)
        edits: tuple[Edit, ...] = ()
        if match.lastgroup != "other":
            edits = (
                *(() if declared else _argument(file, match)),
                Edit(start, end, b"${ROCM_IMAGE}"),
                *_held(file, match, step.end),
            )
            declared = True
        yield _found(file, match, (start, end), edits)
    for setting in file.settings if file.kind is Kind.DOCKERFILE else ():
        match = _IMAGE.fullmatch(setting.value)
        if match is not None:
            edits = (
                () if match.lastgroup == "other" else (Edit(setting.start, setting.end, _image(file, match).encode()),)
            )
            yield _found(file, match, (setting.start, setting.end), edits)
    for entry in file.yaml:
        match = _IMAGE.fullmatch(entry.value) if entry.key in {"image", "container"} else None
        if match is None:
            continue
        place = (entry.start, entry.end)
        if file.kind is not Kind.COMPOSE:
            yield note(place, f"{entry.value} is a CUDA image.", "Use a ROCm image if the job runs on ROCm.")
            continue
        edits = () if match.lastgroup == "other" else (Edit(*place, _image(file, match).encode()),)
        yield _found(file, match, place, edits)


def _argument(file: TextFile, match: re.Match[str]) -> tuple[Edit, ...]:
    """Return the edit that declares the image before the first stage: later, no stage could begin with it."""
    first = next(step for step in file.instructions if step.keyword == "FROM")
    at = file.lines.at(first.start).start
    return (Edit(at, at, f"ARG ROCM_IMAGE={_image(file, match)}{file.lines.newline}".encode()),)


def _held(file: TextFile, match: re.Match[str], at: int) -> tuple[Edit, ...]:
    """Return the edit that holds what is installed later to the image's PyTorch, where it has one."""
    if "/pytorch:" not in _image(file, match):
        return ()
    return (Edit(at, at, "".join(file.lines.newline + line for line in _HOLD).encode()),)


def _found(file: TextFile, match: re.Match[str], place: tuple[int, int], edits: tuple[Edit, ...]) -> Found:
    return rewrite(
        file,
        place,
        f"{match.group()} is a CUDA image.",
        edits,
        remedy="Choose an equivalent ROCm image.",
        outcome=Outcome.SUGGEST,
    )


@lru_cache(maxsize=2)
def _speaks_of_torch(file: TextFile) -> bool:
    return re.search(r"\btorch|requirements", file.text) is not None


def _image(file: TextFile, match: re.Match[str]) -> str:
    """Return the image for ROCm: with PyTorch where the original has it or the file speaks of it."""
    ubuntu = _UBUNTU.search(match.group())
    if match.lastgroup == "torch" or _speaks_of_torch(file):
        return "rocm/pytorch:latest"
    release = f"{ubuntu.group(1)}.{ubuntu.group(2)}" if ubuntu else "24.04"
    return f"rocm/dev-ubuntu-{release if release in {'22.04', '24.04'} else '24.04'}:latest"
