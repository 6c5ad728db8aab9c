"""Access to a folder that somebody else filled: nothing that is done in it leads out of it.

Every path is relative to the folder and is opened component by component, each by the descriptor of the folder above
it and without following links (``openat`` with ``O_NOFOLLOW``; what ``openat2`` calls ``RESOLVE_BENEATH`` and
``RESOLVE_NO_SYMLINKS``). A link, or a component that is exchanged between a check and its use, is an error and never a
way out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from rocmend.core.documents import kind_of
from rocmend.core.errors import DataError

__all__ = ["Beneath", "UnsafePathError", "why_unsafe"]

_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o777
"""Set-user-id, set-group-id and sticky bits are never given to a file."""
_MOST_BYTES = 4096
_MOST_COMPONENTS = 200
_CHUNK = 1 << 20


class UnsafePathError(DataError):
    """A path that would lead out of the folder that it has to stay in."""

    code = "unsafe-path"


def why_unsafe(path: str) -> str:
    """Return why a path cannot be used beneath a folder; empty where it can.

    Args:
        path: Relative, with forward slashes; the empty path is the folder itself.
    """
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        return "is no name of a file"
    parts = path.split("/") if path else []
    if path.startswith("/"):
        return "is absolute"
    if ".." in parts:
        return "leads upwards"
    if "" in parts or "." in parts:
        return "has an empty component"
    if "\0" in path:
        return "holds a NUL"
    return "is too long" if size > _MOST_BYTES or len(parts) > _MOST_COMPONENTS else ""


class Beneath:
    """A folder, held open. It is closed at the end of a ``with`` block, or with its last reference.

    Args:
        root: The folder; links that lead to it are followed, links below it never.

    Raises:
        OSError: It cannot be opened. All methods raise ``OSError`` with the full path as its ``filename``.
        UnsafePathError: By all methods: a path is not relative, or a component of it is a link.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @contextlib.contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """Open a folder; the descriptor is for ``dir_fd`` and says nothing of the right to list it."""
        reason = why_unsafe(path)
        if reason:
            raise UnsafePathError(str(self.root), f"{path!r} {reason}: it is no path within this folder.")
        at = self.descriptor
        try:
            for part in path.split("/") if path else ():
                above = at
                try:
                    at = os.open(part, _ENTER, dir_fd=above)
                except OSError as error:
                    if error.errno in {errno.ENOTDIR, errno.ELOOP} and _is_link(above, part):
                        raise self._link(path) from error
                    error.filename = str(self.root / path)
                    raise
                if above != self.descriptor:
                    os.close(above)
            yield at
        finally:
            if at != self.descriptor:
                os.close(at)

    @contextlib.contextmanager
    def _entry(self, path: str) -> Iterator[tuple[int, str]]:
        """Open the folder that a path's last component is in; errors name the path."""
        above, _, name = path.rpartition("/")
        reason = why_unsafe(path) or ("" if path else "is the folder itself")
        if reason:
            raise UnsafePathError(str(self.root), f"{path!r} {reason}: it is no path within this folder.")
        with self.folder(above) as at:
            try:
                yield at, name
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise self._link(path) from error
                error.filename, error.filename2 = str(self.root / path), None
                raise

    def _link(self, path: str) -> UnsafePathError:
        return UnsafePathError(
            str(self.root / path),
            "is, or lies below, a symbolic link, which is not followed.",
            why="What it leads to may lie outside of the project.",
            next_step="Put the file or folder itself in its place, or remove the link.",
        )

    def stat(self, path: str) -> os.stat_result | None:
        """Return the status of what stands there, of a link itself; None where nothing does."""
        if not path:
            return os.fstat(self.descriptor)
        try:
            with self._entry(path) as (at, name):
                return os.stat(name, dir_fd=at, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_folder(self, path: str) -> bool:
        """Tell whether a folder is there; a link to one is refused."""
        status = self.stat(path)
        if status is not None and stat.S_ISLNK(status.st_mode):
            raise self._link(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    @contextlib.contextmanager
    def _listing(self, path: str) -> Iterator[int]:
        """Open a folder so that it can be listed and flushed."""
        with self.folder(path) as at:
            try:
                handle = os.open(".", _LIST, dir_fd=at)
                try:
                    yield handle
                finally:
                    os.close(handle)
            except OSError as error:
                error.filename = str(self.root / path)
                raise

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        with self._listing(path) as handle:
            return sorted(os.listdir(handle))  # noqa: PTH208  by descriptor

    @contextlib.contextmanager
    def listed(self, path: str) -> Iterator[list[os.DirEntry[str]]]:
        """List a folder, sorted by name. Within the block only, entries can be asked for their status."""
        with self._listing(path) as handle:
            with os.scandir(handle) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            yield entries

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """Open a regular file for reading; nothing else is opened: not a pipe, which blocks, and no device."""
        with self._entry(path) as (at, name):
            self._check_regular(path, os.stat(name, dir_fd=at, follow_symlinks=False))
            handle = os.open(name, _READ, dir_fd=at)
            try:
                self._check_regular(path, os.fstat(handle))  # a pipe could have been put there meanwhile
                yield handle
            finally:
                os.close(handle)

    def _check_regular(self, path: str, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            raise self._link(path)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")

    def read(self, path: str, most: int) -> bytes:
        """Return a regular file's bytes.

        Args:
            path: The file.
            most: Bytes that it may have.

        Raises:
            DataError: It has more.
        """
        parts: list[bytes] = []
        left = most
        with self.opened(path) as handle:
            while part := os.read(handle, _CHUNK):
                left -= len(part)
                if left < 0:
                    raise DataError(str(self.root / path), f"has more than {most:,} bytes, which is not read.")
                parts.append(part)
        return b"".join(parts)

    def document(self, path: str, most: int) -> bytes:
        """Return a regular file's bytes, with the errors of ``rocmend.core.documents.read_document``.

        Raises:
            FileNotFoundError: It is not there.
            NotADirectoryError: What should be its folder is a file.
            DataError: A folder, FIFO, device, a link or below one, too large, or not readable.
        """
        try:
            return self.read(path, most)
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            status = None
            with contextlib.suppress(OSError):  # what could not be opened may not be looked at either: too long a name
                status = self.stat(path)
            what = f"cannot be read: {error.strerror}"
            if status is not None and not stat.S_ISREG(status.st_mode):
                what = f"is {kind_of(status.st_mode)}, expected a regular file"
            raise DataError(str(self.root / path), f"{what}.") from error

    def is_file(self, path: str) -> bool:
        """Tell whether a regular file is there, not a link and not below one."""
        return self._is(path, stat.S_ISREG)

    def is_own_folder(self, path: str) -> bool:
        """Tell whether a folder is there, not a link and not below one."""
        return self._is(path, stat.S_ISDIR)

    def _is(self, path: str, kind: Callable[[int], bool]) -> bool:
        try:
            status = self.stat(path)
        except (OSError, UnsafePathError):
            return False
        return status is not None and kind(status.st_mode)

    def files(self, path: str = "", *, deep: bool = False) -> Iterator[str]:
        """Yield the regular files of a folder, sorted within each; none where it cannot be listed.

        Args:
            path: The folder.
            deep: Those of the folders in it too. Links are neither files nor folders here.
        """
        pending = [path]
        while pending:
            at = pending.pop()
            try:
                with self.listed(at) as entries:
                    files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
                    folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except (OSError, UnsafePathError):  # not there, or exchanged meanwhile
                continue
            above = f"{at}/" if at else ""
            yield from (above + name for name in files)
            if deep:
                pending.extend(above + name for name in reversed(folders))

    def within(self, path: str) -> str:
        """Return where a path leads when links are followed, relative to the folder, for reading.

        What stands there may change before it is read: it is then read without following links.

        Raises:
            UnsafePathError: It leads out of the folder.
        """
        root = os.path.realpath(self.root)
        real = os.path.realpath(self.root / path) if "\0" not in path else ""
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            raise UnsafePathError(str(self.root / path), "leads out of the project, and is not read.")
        return real[len(root) :].lstrip("/")

    def create(self, path: str, data: bytes, *, mode: int = 0, like: str = "") -> None:
        """Write a new file and flush it to disk; that something stands there already is an error.

        Args:
            path: The file.
            data: Its bytes.
            mode: Its permissions; 0 for what is usual for new files.
            like: A file whose owner and attributes it is given, as far as we may and where it is there.
        """
        with self._entry(path) as (at, name):
            handle = os.open(name, _CREATE, 0o666, dir_fd=at)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                if like:
                    self._resemble(handle, like)
                if mode & _PERMISSIONS:
                    os.fchmod(handle, mode & _PERMISSIONS)
                os.fsync(handle)
            finally:
                os.close(handle)

    def _resemble(self, handle: int, like: str) -> None:
        """Give a file another's owner and attributes; no capabilities and labels, which a system's policy gives."""
        status = self.stat(like)
        if status is None or not stat.S_ISREG(status.st_mode):
            return
        with contextlib.suppress(PermissionError):
            os.fchown(handle, status.st_uid, status.st_gid)
        with contextlib.suppress(OSError), self.opened(like) as other:  # a file system without them
            for name in os.listxattr(other):
                if name.startswith(("user.", "system.posix_acl_")):
                    os.setxattr(handle, name, os.getxattr(other, name))

    def put(self, path: str, data: bytes) -> None:
        """Write a file so that a reader never sees half of it; folders that it needs are made."""
        above = path.rpartition("/")[0]
        parts = above.split("/") if above else []
        for count in range(1, len(parts) + 1):
            with contextlib.suppress(FileExistsError):
                self.mkdir("/".join(parts[:count]))
        waiting = "/".join([*parts, f".rocmend-{secrets.token_hex(8)}.part"])
        try:
            self.create(waiting, data)
            self.replace(waiting, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self.unlink(waiting, missing_ok=True)
            raise

    def replace(self, source: str, target: str) -> None:
        """Move a file or folder; a link at the target is replaced, not followed."""
        with self._entry(source) as (at, name), self._entry(target) as (to, wanted):
            os.replace(name, wanted, src_dir_fd=at, dst_dir_fd=to)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        """Remove a file, or a link itself."""
        try:
            with self._entry(path) as (at, name):
                os.unlink(name, dir_fd=at)
        except (FileNotFoundError, NotADirectoryError):
            if not missing_ok:
                raise

    def mkdir(self, path: str) -> None:
        """Make a folder."""
        with self._entry(path) as (at, name):
            os.mkdir(name, dir_fd=at)

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        with self._entry(path) as (at, name):
            os.rmdir(name, dir_fd=at)

    def remove(self, path: str, last: Sequence[str] = ()) -> None:
        """Remove a folder with all that it holds; nothing where it is not there.

        Args:
            path: The folder.
            last: Names that go after all others of their folder, in this order.
        """
        if not self.is_folder(path):
            return
        for name in sorted(self.names(path), key=lambda one: (last.index(one) + 1 if one in last else 0, one)):
            inner = f"{path}/{name}"
            status = self.stat(inner)
            if status is not None and stat.S_ISDIR(status.st_mode):
                self.remove(inner, last)
            else:
                self.unlink(inner, missing_ok=True)
        self.rmdir(path)

    def sync(self, path: str) -> None:
        """Flush a folder's names to disk."""
        with self._listing(path) as handle:
            os.fsync(handle)


def _is_link(at: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False
