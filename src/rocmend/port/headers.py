"""Macros and constants of headers that decide whether lanes diverge: a source is read again with those it includes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.marks import without_marks
from rocmend.port.includes import Includes
from rocmend.port.look import Look
from rocmend.port.nesting import NestingError
from rocmend.port.records import FileReport, Issue, Language
from rocmend.port.rule import rules
from rocmend.port.state import digest
from rocmend.port.suppress import Suppressions

__all__ = ["by_headers"]

_RULE = "CU30"
_KEPT = frozenset(b"if ifdef ifndef elif elifdef elifndef else endif define undef".split())
_ROUNDS = 4
"""Of definitions that are made of others."""
_MOST_BYTES = 1 << 20
_WORD = re.compile(rb"[A-Za-z_]\w*")


def by_headers(root: Path, seen: Sequence[Look], max_file_bytes: int) -> list[Look]:
    """Return looks in which what depends on names of the project's headers was decided with these.

    Args:
        root: The project's folder.
        seen: What was found in its files.
        max_file_bytes: Larger files are not read.
    """
    headers = _Headers(root, {one.path: one.lanes for one in seen if one.lanes is not None}, max_file_bytes)
    return [headers.checked(one) if one.asks and one.lanes and not _skipped(one) else one for one in seen]


def _skipped(one: Look) -> bool:
    return one.report is not None and bool(one.report.skipped)


class _Headers(Includes):
    """What the headers of a project define."""

    def checked(self, one: Look) -> Look:
        """Return a look, with what the rule finds where it knows the names that it asked for."""
        data = self.bytes_of(one.path)
        known = self.definitions(one.path, {name.encode() for name in one.asks})
        if not known or not data or digest(data) != one.sha256:
            return one
        try:
            found = list(_again(one.path, known, data))
        except (NestingError, RecursionError):
            return one
        report = one.report or FileReport(one.path, Language.CUDA, len(data), one.sha256)
        issues = without_marks([*(issue for issue in report.issues if issue.rule != _RULE), *found])
        issues = sorted(Suppressions(data).left(issues), key=lambda issue: (issue.start, issue.end, issue.rule))
        report = msgspec.structs.replace(report, issues=tuple(issues))
        return msgspec.structs.replace(one, report=report if issues else None)

    def definitions(self, path: str, names: set[bytes]) -> bytes:
        """Return the directives and constants of the headers that define one of the names, or what these are made of.

        Args:
            path: The file that includes them.
            names: What is asked for.
        """
        left = sorted(self.closure(path) - {path})
        parts: list[bytes] = []
        constants: dict[bytes, bytes] = {}
        for _ in range(_ROUNDS):
            pattern = re.compile(rb"\b(?:" + b"|".join(map(re.escape, sorted(names))) + rb")\b")
            chosen = [one for one in left if pattern.search(self.bytes_of(one))]
            more: set[bytes] = set()
            for one in chosen:
                text, own, fixed = _defined(one, self.bytes_of(one), names)
                if any(constants.setdefault(name, value) != value for name, value in fixed):
                    return b""  # constants of two namespaces: which one is meant is not known
                if text:
                    parts.append(text)
                    left.remove(one)
                    more |= own
            if not more - names or sum(map(len, parts)) > _MOST_BYTES:
                break
            names = names | more
        # what is defined last is made of what was asked for later
        return b"".join(reversed(parts)) if sum(map(len, parts)) <= _MOST_BYTES else b""


def _defined(path: str, data: bytes, names: Iterable[bytes]) -> tuple[bytes, set[bytes], list[tuple[bytes, bytes]]]:
    """Return a header's directives and those constants that are asked for, the words of these, and their values."""
    file = CudaFile(path, data)
    constants: list[tuple[bytes, bytes]] = []
    pieces: list[tuple[int, bytes]] = []
    words: set[bytes] = set()
    try:
        for name in names:
            for macro in file.macros.get(name, ()):
                words.update(_WORD.findall(data[macro.start : macro.end]))
                pieces.append((macro.start, b""))
            for one in file.declarations_of(name):
                fixed = one.qualifiers & {b"const", b"constexpr"} and one.value is not None and not one.pointers
                if fixed and one.value is not None and file.function_at(one.name.start) is None:
                    value = data[one.value.start : one.value.end]
                    constants.append((name, value))
                    words.update(_WORD.findall(value))
                    pieces.append((one.name.start, b"constexpr int %s = %s;\n" % (name, value.replace(b"\n", b" "))))
    except (NestingError, RecursionError):
        return b"", set(), []
    if not pieces or file.unbalanced:
        return b"", set(), []
    pieces += [(one.start, data[one.start : one.end].rstrip() + b"\n") for one in file.directives if one.name in _KEPT]
    return b"".join(text for _, text in sorted(pieces)), words, constants


def _again(path: str, known: bytes, data: bytes) -> Iterator[Issue]:
    """Yield what the rule finds in a file after definitions, at the places of the file itself."""
    file = CudaFile(path, known + data)
    rule = next(one for one in rules(Language.CUDA) if one.id == _RULE)
    lines = known.count(b"\n")
    for issue in rule.issues(file):
        if issue.start >= len(known):
            yield msgspec.structs.replace(
                issue,
                start=issue.start - len(known),
                end=issue.end - len(known),
                line=issue.line - lines,
                end_line=issue.end_line - lines,
            )
