"""What is known of packages: which are PyTorch's own, which are for CUDA only, which have another build for ROCm."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec

__all__ = ["Package", "Role", "known", "packages"]


class Role(StrEnum):
    """What becomes of a package on ROCm; ``data/packages.toml`` says what each means."""

    TORCH = "torch"
    PINS_TORCH = "pins-torch"
    CUDA = "cuda"
    REPLACED = "replaced"
    BUILD = "build"
    SAME = "same"
    NONE = "none"


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Packages of which the same is known.

    Attributes:
        names: Canonical names or patterns of them.
        role: What becomes of them.
        note: Why, in a sentence or two.
        source: Who says so.
        replacement: What serves AMD GPUs instead.
        minimum: The first release that serves them.
    """

    names: tuple[str, ...]
    role: Role
    note: str
    source: str
    replacement: str = ""
    minimum: str = ""


class _Packages(msgspec.Struct, frozen=True):
    package: tuple[Package, ...]


@cache
def packages() -> tuple[Package, ...]:
    """Return all that is known."""
    text = files("rocmend.port.build.data").joinpath("packages.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Packages).package


@cache
def known(name: str) -> Package | None:
    """Return what is known of a package, by its canonical name; None where nothing is."""
    for one in packages():
        if any(fnmatchcase(name, pattern) for pattern in one.names):
            return one
    return None
