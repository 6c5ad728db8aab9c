"""What a port gives a project beside its rewrites: the modules and headers that they use, each once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.port.records import Edit, Issue
from rocmend.port.state import generations

__all__ = ["header_folder", "headers_in", "modules_in", "placed", "way_to_header"]

_MODULE = re.compile(rb"^[ \t]*from[ \t]+[\w.]*?(_rocm(?:_\w+)?)[ \t]+import\b", re.MULTILINE)


def modules_in(before: bytes, after: bytes) -> list[str]:
    """Return the support modules that a ported Python file imports and its original does not."""
    old = set(_MODULE.findall(before))
    return sorted(name.decode() for name in set(_MODULE.findall(after)) - old)


@cache
def _headers() -> list[str]:
    """Return the names of the headers that there are."""
    from rocmend.port.cuda.write import HEADER

    own = [item.name for item in files("rocmend.port.support").iterdir() if item.name.endswith((".h", ".cuh"))]
    return sorted({HEADER.decode(), *own})


@cache
def _includes() -> re.Pattern[bytes]:
    names = b"|".join(re.escape(name.encode()) for name in _headers())
    return re.compile(rb"^[ \t]*#[ \t]*include[ \t]+\"(?:[^\"\n]*/)?(" + names + rb")\"", re.MULTILINE)


def headers_in(before: bytes, after: bytes) -> list[str]:
    """Return the support headers that a ported CUDA source includes and its original does not."""
    known = set(_includes().findall(before)) if before else set()
    return sorted(name.decode() for name in set(_includes().findall(after)) - known)


def header_folder(root: Path, paths: Iterable[str]) -> str:
    """Return the folder that the support headers stand in: where they are from before, else above all who use them.

    Args:
        root: The project's folder.
        paths: The CUDA sources that are rewritten.
    """
    names = set(_headers())
    for generation in generations(root):
        for entry in generation.manifest.entries:
            where = PurePosixPath(entry.path)
            if not entry.before and where.name in names:
                return "" if str(where.parent) == "." else str(where.parent)
    folders = [str(PurePosixPath(path).parent) for path in paths]
    common = os.path.commonpath(folders) if folders else ""
    return "" if common == "." else common


def way_to_header(path: str, folder: str) -> str:
    """Return what a file's ``#include`` says to reach the compatibility header in a folder."""
    from rocmend.port.cuda.write import HEADER

    return os.path.relpath(f"{folder or '.'}/{HEADER.decode()}", str(PurePosixPath(path).parent))


def placed(issues: Sequence[Issue], path: str, folder: str) -> list[Issue]:
    """Return issues whose edits include the support headers by the way from a file to their folder."""
    way = os.path.relpath(folder or ".", str(PurePosixPath(path).parent))
    if way == ".":
        return list(issues)
    names = b"|".join(re.escape(name.encode()) for name in _headers())
    bare = re.compile(rb"(#[ \t]*include[ \t]+\")(" + names + rb")\"")
    prefix = way.encode() + b"/"

    def moved(edit: Edit) -> Edit:
        text = bare.sub(lambda match: match.group(1) + prefix + match.group(2) + b'"', edit.text)
        return Edit(edit.start, edit.end, text)

    return [msgspec.structs.replace(issue, edits=tuple(map(moved, issue.edits))) for issue in issues]
