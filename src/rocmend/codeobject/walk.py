"""The files of a folder, without following links and without opening what is no regular file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rocmend.codeobject.content import is_candidate, read_content
from rocmend.codeobject.elf import HEADER_BYTES, MAGIC
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.naming import CODE_SUFFIXES, NEVER_CODE, Named, by_path
from rocmend.codeobject.reader import FileReader, Reader, StreamReader
from rocmend.codeobject.survey import TEXT_MAX_BYTES, Survey
from rocmend.core.errors import DataError


class FoundFile:
    """A regular file: its path on disk, its path relative to the folder, its size."""

    __slots__ = ("path", "relative", "size")

    def __init__(self, path: Path, relative: str, size: int) -> None:
        self.path, self.relative, self.size = path, relative, size


def walk(root: Path, survey: Survey, limits: Limits) -> Iterator[FoundFile]:
    """Yield the regular files under a folder in order of their names; links that leave it become problems."""
    inside = os.path.realpath(root)
    pending = [""]
    count = 0
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(root / folder if folder else root), key=lambda entry: entry.name)
        except OSError as error:
            survey.problem(folder or ".", f"cannot be listed: {error.strerror}.")
            continue
        below = []
        for entry in entries:
            relative = f"{folder}/{entry.name}" if folder else entry.name
            shown = relative.encode(errors="surrogateescape").decode(errors="replace")
            if entry.is_symlink():
                _check_link(entry, inside, shown, survey)
            elif entry.is_dir(follow_symlinks=False):
                below.append(relative)
            else:
                found = _regular(entry, shown, survey)
                if found is not None:
                    count += 1
                    if count > limits.members:
                        survey.problem(shown, f"is beyond the first {limits.members} files; the rest was not read.")
                        return
                    yield found
        pending.extend(reversed(below))


def _check_link(entry: os.DirEntry[str], inside: str, shown: str, survey: Survey) -> None:
    """Links inside the folder lead to what is read anyway; one that leaves it is told."""
    target = os.path.realpath(entry.path)
    if target != inside and not target.startswith(inside + os.sep):
        survey.problem(shown, "is a link out of the folder; not followed.")


def _regular(entry: os.DirEntry[str], shown: str, survey: Survey) -> FoundFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        survey.problem(shown, f"cannot be looked at: {error.strerror}.")
        return None
    return FoundFile(Path(entry.path), shown, status.st_size) if stat.S_ISREG(status.st_mode) else None


def take_content(reader: Reader, path: str, named: Named | None, survey: Survey, limits: Limits) -> bool:
    """Take a file into the survey by its bytes, and by its name where they say nothing; whether it was of use.

    Raises:
        DataError: The container that a stream comes from is damaged.
    """
    head = reader.read(0, HEADER_BYTES)
    if is_candidate(head):
        content = read_content(reader, limits)
        if isinstance(reader, StreamReader):
            reader.drain()  # what is wrong with a member is only known at its end
        if path.endswith(CODE_SUFFIXES) and content.kind in {"library", "dll", "other"} and not content.damage:
            content.damaged(DataError(path, "is damaged: it begins as no code object."))
        survey.add_content(path, reader.size, content, named)
    elif path.endswith(CODE_SUFFIXES) or (".so" in path and MAGIC.startswith(head[:4])):
        there = f"the file has {reader.size:,} bytes" if reader.size < HEADER_BYTES else "it begins as no code object"
        survey.add_unread(path, reader.size, f"is cut off or damaged: {there}.")
    elif named is not None:
        survey.add_named(path, reader.size, named)
    else:
        return False
    return True


def take_file(found: FoundFile, survey: Survey, limits: Limits) -> None:
    """Take one file into the survey: by its name where that says enough, else by its content."""
    survey.saw(found.relative, found.size)
    named = by_path(found.relative)
    if named is not None and (not limits.deep or named.kind in {"miopen-db", "aotriton-image"}) and named.target:
        survey.add_named(found.relative, found.size, named)
        return
    wants_text = survey.wants_text(found.relative)
    if not wants_text and NEVER_CODE.search(found.relative):
        if named is not None:
            survey.add_named(found.relative, found.size, named)
        return
    try:
        with FileReader(found.path, found.relative) as reader:
            if wants_text:
                survey.add_text(found.relative, reader.read(0, TEXT_MAX_BYTES).decode(errors="replace"))
            else:
                take_content(reader, found.relative, named, survey, limits)
            survey.read_bytes += reader.bytes_read
    except (OSError, DataError) as error:
        message = error.message if isinstance(error, DataError) else f"cannot be read: {error}."
        survey.add_unread(found.relative, found.size, message)
