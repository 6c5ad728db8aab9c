"""Writing a text file's ROCm side: behind conditions of the file's own kind, or as the text of a file beside it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rocmend.core.errors import UnitError
from rocmend.port.build.file import TextFile
from rocmend.port.build.gates import GATES, UNIT, movable
from rocmend.port.build.kinds import Kind, Manner, destination, kind_of, manner
from rocmend.port.build.lines import Line
from rocmend.port.edits import applied, compatible
from rocmend.port.records import Edit, Issue

__all__ = ["destination", "ported", "redirected"]


def ported(path: str, data: bytes, issues: Iterable[Issue]) -> bytes:
    """Return a file with its issues' edits made for ROCm.

    For a kind with conditions (CMake, Make, shell) this is the file itself, its original lines kept in the branch that
    is not for ROCm. For the others it is what ``destination(path)`` holds; the file itself stays as it is.

    An edit that inserts at the end of a line and begins with a line end adds lines after a statement.

    Raises:
        UnitError: Edits contradict each other, or stand where the kind allows none.
    """
    edits = compatible(edit for issue in issues for edit in issue.edits)
    if not edits:
        return data
    file = TextFile(path, data)
    if manner(file.kind) is Manner.BESIDE:
        return applied(data, edits)
    if manner(file.kind) is Manner.NONE or file.kind is None:
        raise UnitError("port rule", f"{path} is a file type that cannot be rewritten.", next_step="Report it only.")
    return _gated(file, file.kind, edits)


def redirected(written: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files beside, with the lists of requirements that they install named by their ROCm sides.

    Args:
        written: What is written, by the *original's* path.

    Returns:
        By ``destination``.
    """
    lists = {path for path in written if kind_of(path) is Kind.REQUIREMENTS}
    made: dict[str, bytes] = {}
    for path, data in written.items():
        text = data.decode("latin-1")
        if path in lists:
            text = _INCLUDED.sub(lambda match, path=path: _renamed(match, path, lists), text)  # type: ignore[misc]
        elif kind_of(path) is Kind.DOCKERFILE:
            text = _in_image(text, {posixpath.basename(one) for one in lists})
        made[destination(path)] = text.encode("latin-1")
    return made


def _renamed(match: re.Match[str], path: str, lists: set[str]) -> str:
    """Return an include of a list, of its ROCm side where there is one."""
    named = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(2)))
    return match.group(1) + (destination(match.group(2)) if named in lists else match.group(2))


def _in_image(text: str, names: set[str]) -> str:
    """Return a Dockerfile that copies and installs the ROCm sides of lists: an image has folders of its own."""
    for name in sorted(names):
        beside = destination(name if kind_of(name) is Kind.REQUIREMENTS else f"requirements/{name}")
        instead = posixpath.basename(beside)
        word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
        lines = text.splitlines(keepends=True)
        text = "".join(line if line.lstrip().startswith("#") else word.sub(instead, line) for line in lines)
    return text


_INCLUDED = re.compile(r"(?m)^([ \t]*(?:-r|-c|--requirement|--constraint)[ \t=]+)([^\s#]+)")
_SAYS_NOTHING = re.compile(
    rb"\s*(?:add_(?:compile|link)_options\(\s*\)|list\(\s*APPEND\s+\w+\s*\)"
    rb"|set\(\s*(?P<name>\w+)\s+\"?\$\{(?P=name)\}(?:\s|\\\n)*\"?\s*\)"
    rb"|target_(?:compile|link)_options\(\s*[\w${}-]+(?:\s+(?:PRIVATE|PUBLIC|INTERFACE))*\s*\))\s*",
    re.IGNORECASE,
)
_FOR_NO_LANGUAGE = re.compile(rb"[ \t]*\$<\$<COMPILE_LANGUAGE:\w+>:[ \t]*>")


class _Change(NamedTuple):
    """What happens to a statement's lines: edits within them, and lines that are added after them."""

    lines: Line
    inside: tuple[Edit, ...]
    added: bytes


def _gated(file: TextFile, kind: Kind, edits: Sequence[Edit]) -> bytes:
    changes: dict[Line, _Change] = {}
    for edit in edits:
        lines = file.region(edit.start, edit.end)
        if lines is None:
            raise UnitError(
                "port rule",
                f"no condition can be put around offset {edit.start} of {file.path}.",
                next_step="Report it only: TextFile.region tells where a rewrite is possible.",
            )
        change = changes.get(lines, _Change(lines, (), b""))
        if edit.start == edit.end == lines.end and edit.text.startswith((b"\n", b"\r\n")):
            change = change._replace(added=change.added + edit.text)
        else:
            change = change._replace(inside=(*change.inside, edit))
        changes[lines] = change
    parts: list[bytes] = []
    at = 0
    for group in _joined(sorted(changes.values(), key=lambda change: change.lines.start)):
        parts += [file.data[at : group[0].lines.start], _written(file, kind, group)]
        at = group[-1].lines.next
    return b"".join([*parts, file.data[at:]])


def _joined(changes: list[_Change]) -> list[list[_Change]]:
    """Put statements that follow each other behind one condition."""
    groups: list[list[_Change]] = []
    for change in changes:
        last = groups[-1][-1] if groups else None
        if last and last.inside and change.inside and last.lines.next == change.lines.start:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _written(file: TextFile, kind: Kind, group: list[_Change]) -> bytes:
    gate = GATES[kind]
    newline = file.lines.newline.encode()
    first, last = group[0].lines, group[-1].lines
    indent = file.lines.indent(first.start).encode() if gate.indented else b""
    original = file.data[first.start : last.end]
    ending = file.data[last.end : last.next]

    def line(text: str) -> bytes:
        return indent + text.encode()

    if not group[0].inside:
        added = _ended(group[0].added.removeprefix(b"\r\n").removeprefix(b"\n"), newline)
        added = _deeper(added) if gate.indented and movable(kind, added) else added
        lines = [line(gate.rocm), added, line(gate.close)]
        return original + (ending or newline) + newline.join(lines) + ending
    rocm = newline.join(text for change in group if (text := _rocm_side(file, change, newline)))
    if gate.indented and movable(kind, original) and movable(kind, rocm):
        original, rocm = _deeper(original), _deeper(rocm)
    kept = original + (ending or newline)  # with its own line end, whatever those of the rest are
    if not rocm:
        return line(gate.other) + newline + kept + line(gate.close) + ending
    return newline.join([line(gate.rocm), rocm, line(gate.otherwise), kept + line(gate.close)]) + ending


def _deeper(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(UNIT.encode() + line if line.strip() else line for line in lines)


def _rocm_side(file: TextFile, change: _Change, newline: bytes) -> bytes:
    start, end = change.lines.start, change.lines.end
    shifted = [Edit(edit.start - start, edit.end - start, edit.text) for edit in change.inside]
    text = applied(file.data[start:end], shifted)
    if file.kind is Kind.CMAKE:
        text = _FOR_NO_LANGUAGE.sub(b"", text)
        text = b"" if _SAYS_NOTHING.fullmatch(text) else text
    kept = [one.rstrip() for one in text.splitlines() if one.strip() not in {b"", b"\\"}]
    if all(one.lstrip().startswith(b"#") for one in kept):
        kept = []  # a comment of what is gone
    if not kept:
        return _ended(change.added.lstrip(b"\r\n"), newline)
    if not file.data[start:end].rstrip().endswith(b"\\"):
        kept[-1] = kept[-1].removesuffix(b"\\").rstrip()  # what it went on with is gone
    return _ended(newline.join(kept) + change.added, newline)


def _ended(text: bytes, newline: bytes) -> bytes:
    """Give text the file's own line ends."""
    return newline.join(text.replace(b"\r\n", b"\n").split(b"\n"))
