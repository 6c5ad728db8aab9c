"""Sources that make a compiler read a file outside of the project: they are not compiled.

What a compiler reads comes back in its messages and in code objects. ``#include "/etc/shadow"``, ``#embed`` and
``.incbin`` would put a file of the user's there. What a scan of the sources cannot see, macros and pasted strings, is
found in what the compiler made of it (``rocmend.codeobject.hip``, ``within``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

__all__ = ["reached", "reasons"]

_INCLUDED = re.compile(rb"^[ \t]*#[ \t]*(?:include(?:_next)?|import)[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_READS = re.compile(rb"^[ \t]*#[ \t]*embed\b|\.incbin\b", re.MULTILINE)
_ALLOWED = ("/usr/include/", "/usr/local/cuda", "/opt/rocm")
"""Absolute paths that say nothing of the user."""


def reasons(sources: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    """Return the sources that read outside of the project, each with what it does.

    Args:
        sources: Paths relative to the project, and their bytes.
    """
    found: dict[str, str] = {}
    for path, data in sources:
        reads = _READS.search(data)
        if reads:
            found[path] = f"line {_line(data, reads.start())} embeds a file ({_shown(reads[0])})"
            continue
        for included in _INCLUDED.finditer(data):
            name = included[1].decode(errors="replace")
            if _leads_out(path, name):
                found[path] = f"line {_line(data, included.start())} includes {_shown(included[1])}"
                break
    return found


def reached(paths: Iterable[str], known: Mapping[str, str]) -> str:
    """Return the first reason among those of sources; empty where there is none."""
    return next((f"{path}: {known[path]}" for path in sorted(paths) if path in known), "")


def _leads_out(path: str, name: str) -> bool:
    """Tell whether an include leads out of the project, by its own folder and by every folder of headers."""
    if name.startswith("/"):
        return not posixpath.normpath(name).startswith(_ALLOWED)
    depth = path.count("/")
    ups = posixpath.normpath(name).split("/").count("..")
    return ups > depth


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _shown(text: bytes) -> str:
    return text.strip().decode("ascii", "replace")[:120]
