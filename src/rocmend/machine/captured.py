"""A captured machine: what collectors once read, served again from a folder and from nowhere else."""

from __future__ import annotations

import itertools
import os
import posixpath
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rocmend.core.errors import DataError, UsageError
from rocmend.core.records import SCHEMA_VERSION
from rocmend.core.supervise import CommandResult, Ending
from rocmend.core.units import listed
from rocmend.machine import layout
from rocmend.machine.files import clean_path, printable, read_regular
from rocmend.machine.layout import Manifest, Tree
from rocmend.machine.root import DEFAULT_MAX_BYTES, AbsentError, DeniedError, ReadError, Root, Stat, User

T = TypeVar("T")

MAX_ENTRIES = 200_000
"""Files and folders in a capture; a real one has a few hundred."""

MAX_DEPTH = 64
"""Nesting of folders under ``root/``; sysfs paths go about 20 deep."""

MAX_COMMANDS_CHARS = 32 << 20
"""What the tools of a captured machine printed, together; a real one's few hundred KB."""

_MAX_INDEX_CHARS = 32 << 20  # of the names of all folders above the paths in tree.json; a real one's are some 100 KB
_MAX_LINKS = 40  # as Linux counts before ELOOP


class CapturedRoot(Root):
    """A machine read from a capture folder (see ``rocmend.machine.layout``).

    Symbolic links, whether real ones under ``root/`` or those in ``tree.json``, are followed within the captured tree
    as if it were the file system's root, so nothing outside the folder is ever opened.

    Args:
        directory: The capture.

    Raises:
        UsageError: The folder is not there or is no capture.
        DataError: The capture is damaged.
    """

    live = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        manifest: Manifest | None = layout.load_json(directory, layout.MANIFEST, Manifest)
        if manifest is None:
            raise UsageError(
                str(directory),
                f"is not a captured machine: it has no {layout.MANIFEST}.",
                next_step="Make one with `rocmend machine capture DIR`.",
            )
        if manifest.schema_version > SCHEMA_VERSION:
            raise DataError(
                f"capture {directory}",
                f"has schema version {manifest.schema_version}, and this rocmend reads up to {SCHEMA_VERSION}.",
                next_step="Use a newer rocmend.",
            )
        self.manifest = manifest
        self.python = manifest.python
        tree: Tree = layout.load_json(directory, layout.TREE, Tree) or Tree()
        self._stats = self._by_path(tree.stats)
        self._links = self._by_path(tree.links)
        self._lists = self._by_path(tree.lists)
        self._denied = self._by_path(tree.denied)
        self._errors = self._by_path(tree.errors)
        self._files: dict[str, str] = {}
        self._children: dict[str, set[str]] = {}
        self._index_chars = 0
        self._scan()
        for known in (self._stats, self._links, self._denied, self._errors):
            for path in known:
                self._add(path)
        self._commands: dict[tuple[str, ...], CommandResult] | None = None
        self._measurements: dict[str, Any] | None = None

    def check(self) -> None:
        """Refuse a capture that lacks a part or holds a damaged one: what is gone would pass for absent hardware.

        Raises:
            DataError: A part that every capture has is missing, or a document cannot be read.
        """
        missing = [] if self._files or "/" in self._denied else [f"{layout.ROOT}/"]
        missing += [name for name in layout.ALWAYS if not (self.directory / name).exists()]
        if missing:
            raise DataError(
                f"capture {self.directory}",
                f"is incomplete: {listed(missing)} {'is' if len(missing) == 1 else 'are'} missing.",
                why="What is missing would look like hardware and software that the machine does not have.",
                next_step="Copy the whole folder again, or capture the machine again with `rocmend machine capture`.",
            )
        self.environ()
        self.user()
        self.run(())
        self._measured()

    def _by_path(self, values: dict[str, T]) -> dict[str, T]:
        try:
            return {clean_path(path): value for path, value in values.items()}
        except ReadError as error:
            raise DataError(f"capture {self.directory}", f"{layout.TREE} holds a bad path: {error}") from None

    # -- the index ---------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        """Note every file, folder and link under ``root/`` without following one."""
        base = str(self.directory / layout.ROOT)
        if os.path.islink(base):  # noqa: PTH114
            raise DataError(f"capture {self.directory}", f"{layout.ROOT} is a symbolic link, expected a folder.")
        waiting = [(base, "/", 0)]
        count = 0
        while waiting:
            real, path, depth = waiting.pop()
            try:
                with os.scandir(real) as listing:
                    entries = list(itertools.islice(listing, MAX_ENTRIES + 1))
            except FileNotFoundError:
                continue
            except OSError as error:
                self._denied[path] = f"the captured folder cannot be read: {error.strerror}."
                continue
            self._children.setdefault(path, set())
            for entry in entries:
                child = posixpath.join(path, printable(entry.name))
                if entry.name == "__pycache__":
                    continue  # an installer compiles every version.py, those of the example machines too
                count += 1
                if count > MAX_ENTRIES or depth > MAX_DEPTH:
                    raise DataError(
                        f"capture {self.directory}",
                        f"holds more than {MAX_ENTRIES} entries or nests deeper than {MAX_DEPTH}.",
                        why="A capture has a few hundred files, so this is not one.",
                    )
                self._children[path].add(printable(entry.name))
                if entry.is_symlink():
                    self._links.setdefault(child, printable(os.readlink(entry.path)))  # noqa: PTH115
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, child, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    self._files[child] = entry.path
                else:
                    self._errors.setdefault(child, "is not a regular file.")

    def _add(self, path: str) -> None:
        """Make ``path`` appear in the listings of the folders above it."""
        while path != "/":
            parent, name = posixpath.split(path)
            names = self._children.setdefault(parent, set())
            if name in names:
                return
            names.add(name)
            self._index_chars += len(path)
            if self._index_chars > _MAX_INDEX_CHARS:
                raise DataError(f"capture {self.directory}", f"the paths in {layout.TREE} are too many and too deep.")
            path = parent

    def _known(self, path: str) -> bool:
        return (
            path in self._files
            or path in self._stats
            or path in self._children
            or path in self._lists
            or path in self._denied
            or path in self._errors
        )

    def _resolve(self, path: str) -> str:
        """Return the path under which ``path`` is known: itself, or with links followed inside the capture."""
        path = clean_path(path)
        if self._known(path) or not self._links:
            return path
        hops = 0
        done = "/"
        rest = path.strip("/").split("/")
        while rest:
            done = posixpath.join(done, rest.pop(0))
            target = self._links.get(done)
            if target is None:
                continue
            hops += 1
            if hops > _MAX_LINKS:
                raise ReadError(path, "is a symbolic link that leads in a circle.")
            joined = posixpath.join(posixpath.dirname(done), target, *rest)
            full = clean_path(joined[: 4096 + 1])
            if self._known(full):
                return full
            done, rest = "/", full.strip("/").split("/")
        return done

    def _refuse(self, asked: str, path: str) -> None:
        if path in self._denied:
            raise DeniedError(asked, self._denied[path])
        if path in self._errors:
            raise ReadError(asked, self._errors[path])

    # -- Root --------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        """Return a captured file's contents. See ``Root.read_bytes``."""
        found = self._resolve(path)
        self._refuse(path, found)
        real = self._files.get(found)
        if real is not None:
            return read_regular(real, shown_as=path, max_bytes=max_bytes, follow=False)
        stat = self._stats.get(found)
        if found in self._children or found in self._lists or (stat is not None and stat.kind != "file"):
            raise ReadError(path, "is not a regular file.")
        if stat is not None:
            raise ReadError(path, "was there, and its contents were not captured.")
        raise AbsentError(path, "is not there.")

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a captured directory. See ``Root.list_dir``."""
        found = self._resolve(path)
        self._refuse(path, found)
        if found in self._lists:
            return sorted(self._lists[found])
        if found in self._children:
            return sorted(self._children[found])
        if found in self._files or (found in self._stats and self._stats[found].kind != "dir"):
            raise ReadError(path, "is not a directory.")
        return []

    def stat(self, path: str) -> Stat | None:
        """Return what is known of a captured path. See ``Root.stat``."""
        try:
            found = self._resolve(path)
        except ReadError:
            return None
        if found in self._stats:
            return self._stats[found]
        return self._implied_stat(found)

    def _implied_stat(self, path: str) -> Stat | None:
        """Return what the captured tree itself says of a path that ``tree.json`` has no stat for."""
        if path in self._files:
            return Stat("file", 0o644, size_bytes=os.lstat(self._files[path]).st_size)
        if path in self._children or path in self._lists:
            return Stat("dir", 0o755)
        if path in self._denied:
            return Stat("file", 0o600, readable=False)
        return Stat("other", 0o644) if path in self._errors else None

    def link(self, path: str) -> str | None:
        """Return where a captured symbolic link points. See ``Root.link``."""
        path = clean_path(path)
        target = self._links.get(path)
        if target is not None or not self._links:
            return target
        parent, name = posixpath.split(path)
        return self._links.get(posixpath.join(self._resolve(parent), name))

    def stats(self) -> Iterable[Stat]:
        """Return what is known of owners and modes, of all paths."""
        return self._stats.values()

    def environ(self) -> dict[str, str]:
        """Return the captured environment variables."""
        found: dict[str, str] | None = layout.load_json(self.directory, layout.ENVIRON, dict[str, str])
        return found or {}

    def user(self) -> User:
        """Return the captured user; an unprivileged one in no group where none was captured."""
        found: User | None = layout.load_json(self.directory, layout.USER, User)
        return found or User(1000, 1000, ())

    def run(self, argv: Sequence[str], *, time_limit_s: float = 10.0) -> CommandResult:  # noqa: ARG002  nothing runs
        """Return what a tool printed when the machine was captured; a tool not captured was not found."""
        if self._commands is None:
            self._commands = self._load_commands()
        command = tuple(argv)
        return self._commands.get(command) or CommandResult(command, Ending.NOT_FOUND)

    def _load_commands(self) -> dict[tuple[str, ...], CommandResult]:
        folder = self.directory / layout.COMMANDS
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".json"))
        except OSError:
            return {}
        results: dict[tuple[str, ...], CommandResult] = {}
        left = MAX_COMMANDS_CHARS
        for name in names[:1000]:
            result: CommandResult | None = layout.load_json(folder, name, CommandResult)
            if result is None:
                continue
            left -= len(result.stdout) + len(result.stderr)
            if left < 0:
                raise DataError(f"capture {folder}", f"holds more than {MAX_COMMANDS_CHARS} characters of output.")
            results[result.argv] = result
        return results

    def measure(self, name: str, path: str, function: Callable[[Path], Any]) -> Any:  # noqa: ARG002  nothing is read
        """Return the value measured when the machine was captured. See ``Root.measure``."""
        measurements = self._measured()
        key = layout.measurement_key(name, clean_path(path))
        if key not in measurements:
            raise AbsentError(path, f"the capture has no measurement {name!r} of it.")
        return measurements[key]

    def _measured(self) -> dict[str, Any]:
        if self._measurements is None:
            self._measurements = (
                layout.load_json(
                    self.directory, layout.MEASUREMENTS, dict[str, Any], max_bytes=layout.MAX_MEASURED_BYTES
                )
                or {}
            )
        return self._measurements
