"""The machine we run on, as collectors read it."""

from __future__ import annotations

import os
import stat as stat_modes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rocmend.core.supervise import CommandResult, Ending, run_command
from rocmend.machine.files import clean_path, printable, read_error, read_regular
from rocmend.machine.layout import command_slug, measurement_key
from rocmend.machine.parse.environment import is_kept
from rocmend.machine.recording import Recording
from rocmend.machine.root import DEFAULT_MAX_BYTES, AbsentError, ChosenPython, DeniedError, ReadError, Root, Stat, User

TOOL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rocm/bin"
"""Where tools are looked for; the user's own PATH could hold anything under a tool's name."""

MAX_TOOL_BYTES = 8 << 20
"""What is kept of a tool's output; the kernel log of a machine in trouble has a few megabytes."""

MAX_NAMES = 200_000
"""Names listed of one directory."""

_KINDS = {
    stat_modes.S_IFREG: "file",
    stat_modes.S_IFDIR: "dir",
    stat_modes.S_IFCHR: "char",
    stat_modes.S_IFBLK: "block",
    stat_modes.S_IFLNK: "link",
}


class LiveRoot(Root):
    """The running machine.

    Args:
        recording: Keep what is read in ``record``, for a capture.
        python: The Python environment that was asked for.

    Attributes:
        record: What was read so far, or None where nothing is recorded.
    """

    live = True

    def __init__(self, *, recording: bool = False, python: ChosenPython | None = None) -> None:
        self.python = python
        self.record = Recording() if recording else None

    def read_bytes(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        """Return a regular file's contents. See ``Root.read_bytes``."""
        path = clean_path(path)
        try:
            data = read_regular(path, shown_as=path, max_bytes=max_bytes, follow=True)
        except ReadError as error:
            self._note_failure(path, error)
            raise
        if self.record is not None:
            self.record.add_file(path, data)
        return data

    def list_dir(self, path: str) -> list[str]:
        """Return the names in a directory. See ``Root.list_dir``."""
        path = clean_path(path)
        try:
            names = self._names(path)
        except AbsentError:
            return []
        except ReadError as error:
            self._note_failure(path, error)
            raise
        if self.record is not None:
            self.record.lists[path] = names
        return names

    @staticmethod
    def _names(path: str) -> list[str]:
        try:
            with os.scandir(path) as entries:
                return sorted(printable(entry.name) for entry, _ in zip(entries, range(MAX_NAMES), strict=False))
        except NotADirectoryError:
            raise ReadError(path, "is not a directory.") from None
        except OSError as error:
            raise read_error(path, error) from None

    def _note_failure(self, path: str, error: ReadError) -> None:
        if self.record is None or isinstance(error, AbsentError):
            return
        where = self.record.denied if isinstance(error, DeniedError) else self.record.errors
        where[path] = error.message

    def stat(self, path: str) -> Stat | None:
        """Return what is known of a path. See ``Root.stat``."""
        try:
            path = clean_path(path)
            info = os.stat(path)  # noqa: PTH116  Path.stat builds an object for each of some hundred calls
        except (OSError, ReadError):
            return None
        found = Stat(
            kind=_KINDS.get(stat_modes.S_IFMT(info.st_mode), "other"),
            mode=stat_modes.S_IMODE(info.st_mode),
            uid=info.st_uid,
            gid=info.st_gid,
            size_bytes=info.st_size,
            readable=os.access(path, os.R_OK),
            writable=os.access(path, os.W_OK),
            owner=_user_name(info.st_uid),
            group=_group_name(info.st_gid),
        )
        if self.record is not None:
            self.record.stats[path] = found
        return found

    def link(self, path: str) -> str | None:
        """Return where a symbolic link points. See ``Root.link``."""
        try:
            path = clean_path(path)
            target = printable(os.readlink(path))  # noqa: PTH115
        except (OSError, ReadError):
            return None
        if self.record is not None:
            self.record.links[path] = target
        return target

    def environ(self) -> dict[str, str]:
        """Return the environment variables; a recording keeps only those that diagnoses read."""
        found = {printable(name): printable(value) for name, value in os.environ.items()}
        if self.record is not None:
            self.record.environ = {name: value for name, value in found.items() if is_kept(name)}
        return found

    def user(self) -> User:
        """Return the user we run as, with the names of its groups."""
        groups = {_group_name(gid) or str(gid) for gid in (os.getegid(), *os.getgroups())}
        user = User(os.geteuid(), os.getegid(), tuple(sorted(groups)))
        if self.record is not None:
            self.record.user = user
        return user

    def run(self, argv: Sequence[str], *, time_limit_s: float = 10.0) -> CommandResult:
        """Run a read-only tool in an environment of our making. See ``Root.run``."""
        result = run_command(argv, time_limit_s=time_limit_s, env=_tool_environment(), max_output_bytes=MAX_TOOL_BYTES)
        if self.record is not None and result.ending is not Ending.NOT_FOUND:
            self.record.commands[command_slug(argv)] = result
        return result

    def measure(self, name: str, path: str, function: Callable[[Path], Any]) -> Any:
        """Return ``function(path)``. See ``Root.measure``."""
        path = clean_path(path)
        if not os.path.exists(path):  # noqa: PTH110
            raise AbsentError(path, "is not there.")
        try:
            value = function(Path(path))
        except ReadError:
            raise
        except OSError as error:
            raise read_error(path, error) from None
        if self.record is not None:
            self.record.measurements[measurement_key(name, path)] = value
        return value


def _tool_environment() -> dict[str, str]:
    """Return what a tool may know: no locale (its words are parsed), no preloads, and where ROCm was put."""
    environment = {"PATH": TOOL_PATH, "LC_ALL": "C", "HOME": "/", "TERM": "dumb", "NO_COLOR": "1"}
    rocm = os.environ.get("ROCM_PATH", "")
    if rocm.startswith("/"):
        environment |= {"ROCM_PATH": rocm, "PATH": f"{rocm.rstrip('/')}/bin:{TOOL_PATH}"}
    return environment


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _group_name(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return ""
