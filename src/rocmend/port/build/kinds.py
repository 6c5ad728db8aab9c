"""What kind of text file a path names, and how the ROCm side of such a file is written."""

from __future__ import annotations

import re
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache

__all__ = ["Kind", "Manner", "destination", "for_rocm", "kind_of", "manner", "of_ci", "paths"]


class Kind(StrEnum):
    """A format, or a use of one."""

    CMAKE = "cmake"
    MAKE = "make"
    BAZEL = "bazel"
    MESON = "meson"
    SHELL = "shell"
    DOCKERFILE = "dockerfile"
    COMPOSE = "compose"
    CONDA = "conda"
    WORKFLOW = "workflow"
    YAML = "yaml"
    TOML = "toml"
    INI = "ini"
    REQUIREMENTS = "requirements"
    JSON = "json"
    ENV = "env"


class Manner(StrEnum):
    """How a file's ROCm side is written, so that its NVIDIA side stays what it was."""

    GATED = "gated"
    """In the file, behind its own kind of condition on ``USE_ROCM``."""
    BESIDE = "beside"
    """In a second file; the first is not touched."""
    NONE = "none"
    """Not at all: the format has no conditions, and a second file would take effect by itself or not at all."""


_NAMES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (Kind.CMAKE, ("cmakelists.txt", "*.cmake", "*.cmake.in")),
    (Kind.MAKE, ("makefile", "gnumakefile", "makefile.*", "*.mk", "*.mak")),
    (Kind.BAZEL, ("/build", "/build.bazel", "/workspace", "/workspace.bazel", "*.bzl")),
    (Kind.MESON, ("/meson.build",)),
    (
        Kind.DOCKERFILE,
        ("dockerfile", "dockerfile.*", "dockerfile-*", "*.dockerfile", "containerfile", "containerfile.*"),
    ),
    (Kind.COMPOSE, ("docker-compose*.yml", "docker-compose*.yaml", "compose*.yml", "compose*.yaml")),
    (Kind.WORKFLOW, (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".circleci/config.yml")),
    (Kind.CONDA, ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml")),
    (Kind.YAML, ("*.yml", "*.yaml")),
    (Kind.TOML, ("*.toml",)),
    (Kind.INI, ("*.cfg", "*.ini")),
    (
        Kind.REQUIREMENTS,
        ("*requirements*.txt", "*requirements*.in", "*constraints*.txt", "requirements/*.txt", "requirements/*.in"),
    ),
    (Kind.SHELL, ("*.sh", "*.bash", "*.zsh", "*.slurm", "*.sbatch", ".bashrc", ".profile")),
    (Kind.JSON, ("*.json", "*.jsonc")),
    (Kind.ENV, (".env", ".env.*", "*.env")),
)

_MANNERS = {
    Kind.CMAKE: Manner.GATED,
    Kind.MAKE: Manner.GATED,
    Kind.SHELL: Manner.GATED,
    Kind.DOCKERFILE: Manner.BESIDE,
    Kind.COMPOSE: Manner.BESIDE,
    Kind.CONDA: Manner.BESIDE,
    Kind.REQUIREMENTS: Manner.BESIDE,
    Kind.ENV: Manner.BESIDE,
}

_OTHERS = re.compile(
    r"(?<![a-z])(?:ascend|npu|camb|cambricon|mlu|maca|musa|xpu|hpu|gaudi|habana|tpu|xla|neuron|openvino|coreml)(?![a-z0-9])"
)
"""Files for the accelerators of others, by their names: they have nothing that a port could give to ROCm."""
_OWN = re.compile(r"(?<![a-z])(?:rocm[0-9.]*|hip|amd|amdgpu)(?![a-z0-9])")


def paths(*kinds: Kind) -> tuple[str, ...]:
    """Return the patterns of file names of some kinds: what a rule for text gives as its ``paths``."""
    return tuple(pattern for kind, patterns in _NAMES if kind in kinds for pattern in patterns)


def for_rocm(path: str) -> bool:
    """Tell whether a file is a project's own for ROCm, by its name or a folder's: ``docker/Dockerfile.rocm``."""
    return _OWN.search(path.lower()) is not None


@lru_cache(maxsize=4096)
def kind_of(path: str) -> Kind | None:
    """Return the kind of a file; None where it is none of them, or a project's own file for ROCm or for others' chips.

    Args:
        path: Relative to the project, with forward slashes.
    """
    if for_rocm(path) or _OTHERS.search(path.lower()):
        return None
    low = "/" + path.lower().lstrip("/")
    for kind, patterns in _NAMES:
        if any(fnmatchcase(low, "*/" + pattern.lstrip("/")) for pattern in patterns):
            return kind
    return None


def manner(kind: Kind | None) -> Manner:
    """Return how the ROCm side of such a file is written."""
    return Manner.NONE if kind is None else _MANNERS.get(kind, Manner.NONE)


def destination(path: str) -> str:
    """Return the path that a file's ROCm side is written to: its own, or that of a file beside it.

    ``Dockerfile`` → ``Dockerfile.rocm``, ``requirements.txt`` → ``requirements-rocm.txt``,
    ``docker-compose.yml`` → ``docker-compose.rocm.yml``, ``.env`` → ``.env.rocm``.
    """
    kind = kind_of(path)
    if manner(kind) is not Manner.BESIDE:
        return path
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if kind in {Kind.DOCKERFILE, Kind.ENV} and not (stem and ending.lower() in {"dockerfile", "env"}):
        made = f"{name}.rocm"
    elif kind in {Kind.DOCKERFILE, Kind.COMPOSE, Kind.ENV}:
        made = f"{stem}.rocm.{ending}"
    else:
        made = f"{stem}-rocm{dot}{ending}"
    return f"{folder}{slash}{made}"


_CI = re.compile(
    r"(?:^|/)(?:\.github|\.gitlab|\.circleci|\.buildkite|\.azure-pipelines|\.jenkins|\.ci|ci)/"
    r"|(?:^|/)(?:\.gitlab-ci|\.travis|appveyor|azure-pipelines)\.ya?ml\Z"
)


def of_ci(path: str) -> bool:
    """Tell whether a file sets up the project's own builds and tests: jobs for CUDA stay, ROCm gets its own."""
    return _CI.search(path) is not None
