"""How collectors see a machine: one interface over the running machine and over a captured one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.supervise import CommandResult

DEFAULT_MAX_BYTES = 1 << 20
"""Most files that describe a machine are a few hundred bytes; one larger than this is cut or refused."""


class ReadError(RocmendError):
    """A path of the machine that could not be read."""

    code = "unreadable"


class AbsentError(ReadError):
    """The path is not there (which is often an answer in itself)."""


class DeniedError(ReadError):
    """The path is there and we may not read it."""


class Stat(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a collector may ask about a path.

    Attributes:
        kind: ``file``, ``dir``, ``char``, ``block``, ``link`` or ``other``.
        mode: Permission bits, e.g. 0o660.
        uid: Owner.
        gid: Group.
        size_bytes: Size as stat gives it.
        readable: The current user can read it.
        writable: The current user can write it.
        owner: Owner's name where known.
        group: Group's name where known.
    """

    kind: str
    mode: int
    uid: int = 0
    gid: int = 0
    size_bytes: int = 0
    readable: bool = True
    writable: bool = False
    owner: str = ""
    group: str = ""


class User(msgspec.Struct, frozen=True):
    """The user whose access is being judged."""

    uid: int
    gid: int
    groups: tuple[str, ...]


class ChosenPython(msgspec.Struct, frozen=True):
    """A Python environment that was named, or that was chosen when a machine was captured.

    Attributes:
        executable: Its interpreter; empty for that of the prefix.
        prefix: Its ``sys.prefix``; empty for that of the interpreter.
        found_by: Why it is the one, in a few words.
    """

    executable: str
    prefix: str
    found_by: str


class Root(ABC):
    """A machine as collectors read it. Paths are absolute paths *on that machine*, always with ``/``."""

    live: bool
    """True where this is the machine we run on."""

    python: ChosenPython | None = None
    """The Python environment to read; None where the machine's variables decide."""

    @abstractmethod
    def read_bytes(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        """Return a regular file's contents, at most ``max_bytes`` of it.

        Raises:
            AbsentError: No such file.
            DeniedError: No permission.
            ReadError: Not a regular file, leaves the root, or an I/O error.
        """

    def read_text(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> str:
        """Return a file as UTF-8 text, invalid bytes replaced. Raises as ``read_bytes``."""
        return self.read_bytes(path, max_bytes=max_bytes).decode(errors="replace")

    def read_or_none(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> str | None:
        """Return stripped text, or None where the file is absent. Raises DeniedError and ReadError."""
        try:
            return self.read_text(path, max_bytes=max_bytes).strip()
        except AbsentError:
            return None

    @abstractmethod
    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; an absent one is empty. Raises DeniedError, ReadError."""

    @abstractmethod
    def stat(self, path: str) -> Stat | None:
        """Return what is known of a path (links followed), or None where it is absent."""

    @abstractmethod
    def link(self, path: str) -> str | None:
        """Return where a symbolic link points, as written, or None where the path is no link or absent."""

    @abstractmethod
    def environ(self) -> dict[str, str]:
        """Return the environment variables (of a captured machine: those that were kept)."""

    @abstractmethod
    def user(self) -> User:
        """Return the user whose access ``stat`` judges."""

    @abstractmethod
    def run(self, argv: Sequence[str], *, time_limit_s: float = 10.0) -> CommandResult:
        """Run a read-only tool (or return what it printed when the machine was captured). Never raises for the tool."""

    @abstractmethod
    def measure(self, name: str, path: str, function: Callable[[Path], Any]) -> Any:
        """Return ``function(real path)``, a JSON value: for files too large to capture, whose summary is kept instead.

        Args:
            name: What is measured, e.g. ``code-objects``; with ``path`` the key under which a capture keeps it.
            path: The file or directory on the machine.
            function: Reads the real path; called on a live machine only.

        Raises:
            AbsentError: The path is absent, or a captured machine has no such measurement.
        """

    def exists(self, path: str) -> bool:
        """Whether the path is there."""
        return self.stat(path) is not None

    def glob(self, directory: str, pattern: str) -> list[str]:
        """Return full paths of the names in ``directory`` that match a shell pattern, in natural order."""
        from fnmatch import fnmatchcase

        names = [name for name in self.list_dir(directory) if fnmatchcase(name, pattern)]
        return [f"{directory.rstrip('/')}/{name}" for name in sorted(names, key=natural_key)]


def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Sort key that puts ``node10`` after ``node2``."""
    import re

    parts = re.findall(r"\d+|\D+", text)
    return tuple((int(part), "") if part.isdigit() and part.isascii() else (-1, part) for part in parts)
