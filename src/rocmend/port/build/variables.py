"""Rewriting what sets a variable, whatever the kind of its file."""

from __future__ import annotations

from rocmend.port.build.file import TextFile
from rocmend.port.build.found import commented
from rocmend.port.build.kinds import Kind
from rocmend.port.build.settings import Setting
from rocmend.port.records import Edit

__all__ = ["KINDS", "dropped", "renamed", "set_to"]

KINDS = (
    Kind.SHELL,
    Kind.DOCKERFILE,
    Kind.ENV,
    Kind.COMPOSE,
    Kind.MAKE,
    Kind.CMAKE,
    Kind.YAML,
    Kind.WORKFLOW,
    Kind.TOML,
    Kind.JSON,
)
"""The kinds of files that set variables."""

_BY_LINES = {Kind.ENV, Kind.COMPOSE}


def dropped(file: TextFile, setting: Setting, why: str) -> tuple[Edit, ...]:
    """Return edits that leave a variable unset for ROCm; empty where the file's kind has no way to say so."""
    start, end = setting.whole
    if file.kind in _BY_LINES:
        return commented(file, start, end, why)
    if file.kind is Kind.DOCKERFILE and setting.sole:
        line = file.lines.covering(start, end)
        if file.text[start : start + 3].upper() in {"ENV", "ARG"}:
            return (Edit(line.start, line.next, b""),)
    if file.kind in {Kind.MAKE, Kind.CMAKE} and setting.sole:
        return (Edit(start, end, b""),)
    if setting.sole and file.kind in {Kind.SHELL, Kind.DOCKERFILE}:
        return (Edit(start, end, f"unset {setting.name}".encode()),)
    if file.kind in {Kind.SHELL, Kind.DOCKERFILE, Kind.MAKE}:
        return (Edit(setting.name_start, _after_blanks(file, setting.end), b""),)
    return ()


def set_to(setting: Setting, value: str) -> tuple[Edit, ...]:
    """Return edits that set a variable to another value for ROCm."""
    return (Edit(setting.start, setting.end, value.encode()),)


def renamed(file: TextFile, setting: Setting, name: str, value: str) -> tuple[Edit, ...]:
    """Return edits that set another variable for ROCm; empty where the name does not stand beside the value."""
    between = file.text[setting.name_start + len(setting.name) : setting.start].strip(" \t\"'")
    if between not in {"=", ":"}:
        return ()
    named = Edit(setting.name_start, setting.name_start + len(setting.name), name.encode())
    return (named, *set_to(setting, value))


def _after_blanks(file: TextFile, at: int) -> int:
    while at < len(file.text) and file.text[at] in " \t":
        at += 1
    return at
