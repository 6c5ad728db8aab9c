"""The files that say how a project is built, where they are looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from rocmend.core.beneath import Beneath

__all__ = ["build_files", "builds_above"]

_BUILDS = ("CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "*.mk", "setup.py", "meson.build")


def build_files(tree: Beneath) -> Iterator[str]:
    """Yield the files in a project's folder, and in those in it, that say how it is built."""
    for folder in ("", *(name for name in tree.names("") if tree.is_own_folder(name))):
        for path in tree.files(folder):
            if any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in _BUILDS):
                yield path


def builds_above(tree: Beneath, paths: Iterable[str]) -> Iterator[str]:
    """Yield the files in the folders of sources, and in those above them, that say how they are built."""
    for folder in {up for path in paths for up in PurePosixPath(path).parents}:
        for name in _BUILDS:
            if "*" not in name and tree.is_file(path := (folder / name).as_posix()):
                yield path
