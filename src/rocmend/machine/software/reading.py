"""Small reads that software collectors share: optional files, links, and summaries of large files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rocmend.machine.root import ReadError, Root

T = TypeVar("T")

MAX_LINKS = 16
"""Links followed from one path; the kernel allows 40, and real chains have two or three."""


def text(root: Root, path: str, *, max_bytes: int = 1 << 18) -> str | None:
    """Return a file's text, or None where it is absent or unreadable: for files that only add detail."""
    try:
        return root.read_text(path, max_bytes=max_bytes)
    except ReadError:
        return None


def names(root: Root, path: str) -> list[str]:
    """Return the names in a directory; empty where it is absent or unreadable."""
    try:
        return root.list_dir(path)
    except ReadError:
        return []


def is_dir(root: Root, path: str) -> bool:
    """Whether the path is a directory (links followed)."""
    stat = root.stat(path)
    return stat is not None and stat.kind == "dir"


def final_path(root: Root, path: str) -> str:
    """Follow the links at the end of a path: ``/opt/rocm`` to ``/opt/rocm-7.2.0``. A loop ends where it was noticed."""
    seen = {path}
    for _ in range(MAX_LINKS):
        target = root.link(path)
        if target is None:
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if path in seen:
            break
        seen.add(path)
    return path


def measured(root: Root, name: str, path: str, function: Callable[[Path], Any], fallback: Callable[[], T]) -> Any | T:
    """Return ``root.measure(...)``, or ``fallback()`` where the machine has neither the path nor a measurement of it.

    A capture made by hand holds the small files themselves, so the fallback reads those.
    """
    try:
        return root.measure(name, path, function)
    except ReadError:
        return fallback()
