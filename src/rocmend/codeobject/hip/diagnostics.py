"""Reading what clang, its assembler and its linker print."""

from __future__ import annotations

import re

from rocmend.codeobject.hip.records import Diagnostic, Level

MAX_DIAGNOSTICS = 200
"""More say nothing that these do not."""

_PLACED = re.compile(
    r"^(?P<file>[^\n:][^\n]*?):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<level>fatal error|error|warning|note|remark): "
    r"(?P<message>.*)$"
)
_BARE = re.compile(
    r"^(?:(?:zig|clang|clang\+\+|amdclang\+\+|hipcc|ld\.lld|lld)(?:-\d+)?: )?(?P<level>fatal error|error|warning): "
    r"(?P<message>.*)$"
)
_LLVM = re.compile(r"^(?P<message>LLVM ERROR: .*)$")
_OPTION = re.compile(r" \[(?P<option>-W[^\]]+)\]$")
_MISSING = re.compile(r"'(?P<header>[^']+)' file not found")
_LEVELS = {
    "fatal error": Level.ERROR,
    "error": Level.ERROR,
    "warning": Level.WARNING,
    "note": Level.NOTE,
    "remark": Level.NOTE,
}


def read_diagnostics(text: str, names: dict[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """Return the messages in what the tools printed, each once, in order; total on any text.

    Args:
        text: Standard error of clang or ld.lld.
        names: What files are called instead: the temporary copy of a source has no name that a reader knows.
    """
    found: dict[Diagnostic, None] = {}  # both passes over a translation unit report the same
    for line in text.splitlines():
        one = _read(line, names or {})
        if one is not None:
            found.setdefault(one)
        if len(found) >= MAX_DIAGNOSTICS:
            break
    return tuple(found)


def _read(line: str, names: dict[str, str]) -> Diagnostic | None:
    if placed := _PLACED.match(line):
        message, option = _split(placed["message"])
        file = names.get(placed["file"], placed["file"])
        if file in {"<unknown>", "<built-in>"}:
            return Diagnostic(_LEVELS[placed["level"]], message, option=option)
        row, column = (int(placed[part] or 0) for part in ("line", "column"))
        return Diagnostic(_LEVELS[placed["level"]], message, file, row, column, option)
    if bare := _BARE.match(line):
        message, option = _split(bare["message"])
        return Diagnostic(_LEVELS[bare["level"]], message, option=option)
    if fatal := _LLVM.match(line):
        return Diagnostic(Level.ERROR, fatal["message"])
    return None


def _split(message: str) -> tuple[str, str]:
    option = _OPTION.search(message)
    return (message[: option.start()], option["option"]) if option else (message, "")


def missing_headers(diagnostics: tuple[Diagnostic, ...]) -> tuple[str, ...]:
    """Return the headers that were not found, each once."""
    found = (_MISSING.search(one.message) for one in diagnostics if one.level is Level.ERROR)
    return tuple(dict.fromkeys(one["header"] for one in found if one))
