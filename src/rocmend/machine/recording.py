"""What collectors read of a machine, kept so that a capture can serve it again."""

from __future__ import annotations

from typing import Any

import msgspec

from rocmend.core.supervise import CommandResult
from rocmend.machine.root import Stat, User


class Recording(msgspec.Struct):
    """Everything read through a root; travels from a collector's child to its parent.

    Attributes:
        files: Path to the bytes read (the longest read of a path, where there were several).
        stats: Path to what ``stat`` said.
        links: Path to where a symbolic link points.
        lists: Path to the names in a directory.
        denied: Path to why it may not be read.
        errors: Path to why reading it failed in another way.
        commands: Results of tools, by command line.
        environ: Environment variables that may be kept.
        user: The user whose access was judged.
        measurements: ``name|path`` to the value measured.
    """

    files: dict[str, bytes] = {}
    stats: dict[str, Stat] = {}
    links: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    denied: dict[str, str] = {}
    errors: dict[str, str] = {}
    commands: dict[str, CommandResult] = {}
    environ: dict[str, str] = {}
    user: User | None = None
    measurements: dict[str, Any] = {}

    def add_file(self, path: str, data: bytes) -> None:
        """Keep the bytes read of a file; a second, shorter read of it changes nothing."""
        known = self.files.get(path)
        if known is None or len(data) > len(known):
            self.files[path] = data

    def merge(self, other: Recording) -> None:
        """Take over what another collector read; of two different answers the first stands."""
        for path, data in other.files.items():
            self.add_file(path, data)
        self.stats = other.stats | self.stats
        self.links = other.links | self.links
        self.lists = other.lists | self.lists
        self.denied = other.denied | self.denied
        self.errors = other.errors | self.errors
        self.commands = other.commands | self.commands
        self.environ = other.environ | self.environ
        self.measurements = other.measurements | self.measurements
        self.user = self.user or other.user
