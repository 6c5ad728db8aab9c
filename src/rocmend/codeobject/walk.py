"""The files of a folder, without following links and without opening what is no regular file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from rocmend.codeobject.content import is_candidate, read_content
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.naming import by_path
from rocmend.codeobject.reader import FileReader
from rocmend.codeobject.survey import TEXT_MAX_BYTES, Survey
from rocmend.core.errors import DataError

_NEVER_CODE = re.compile(
    r"\.(py[ci]?|pxd|pyx|[ch]|hpp|hh|cuh|cc|cpp|cu|hip|inc|txt|md|rst|json|ya?ml|toml|cfg|html|css|js|svg|png|cmake|pc|"
    r"ptx|typed|csv|log|gz|bz2|xz|zst|whl|a|lib|ll|bc|td|def)\Z",
    re.IGNORECASE,
)
_MIN_BYTES = 64


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


def take_file(found: FoundFile, survey: Survey, limits: Limits) -> None:
    """Take one file into the survey: by its name where that says enough, else by its content."""
    survey.saw(found.relative, found.size)
    named = by_path(found.relative)
    if named is not None and (not limits.deep or named.kind in {"miopen-db", "aotriton-image"}) and named.target:
        survey.add_named(found.relative, found.size, named)
        return
    wants_text = survey.wants_text(found.relative)
    if not wants_text and (_NEVER_CODE.search(found.relative) or found.size < _MIN_BYTES):
        if named is not None:
            survey.add_named(found.relative, found.size, named)
        return
    try:
        with FileReader(found.path, found.relative) as reader:
            if wants_text:
                survey.add_text(found.relative, reader.read(0, TEXT_MAX_BYTES).decode(errors="replace"))
            elif is_candidate(reader.read(0, _MIN_BYTES)):
                survey.add_content(found.relative, found.size, read_content(reader, limits), named)
            elif named is not None:
                survey.add_named(found.relative, found.size, named)
            survey.read_bytes += reader.bytes_read
    except (OSError, DataError) as error:
        survey.problem(found.relative, error.message if isinstance(error, DataError) else f"cannot be read: {error}.")
