"""Changing many files of a project at once: all of them, or none.

What happens, in this order; ``transaction`` is a folder in ``.rocmend/port``:

1. ``transaction`` with the originals, the inverse patch and the manifest. Without a manifest, nothing else was touched.
2. The new bytes, each in a hidden file beside the one that it will replace.
3. ``transaction/commit``: from here on it is finished, not taken back.
4. The hidden files are moved into place, each where the file still is what it was.
5. ``transaction`` becomes the generation ``NNNN``; or, when ports are undone, ``transaction/finished`` is written,
   the generations go, but for what they know of files that were kept, and ``transaction`` goes.

Everything is flushed to disk before the next step. Whatever interrupts it, ``recover`` finishes it or takes it back:
back before 3, forward after it. Only where somebody changed a file in between is it taken back after 3 as well
(``transaction/rollback`` says so), and that file is left as it was found.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.files import write_atomic
from rocmend.port.patch import only
from rocmend.port.records import Change
from rocmend.port.state import (
    INVERSE,
    MANIFEST,
    ORIGINALS,
    Entry,
    Generation,
    Manifest,
    compressed,
    digest,
    digest_at,
    folder,
)

__all__ = ["commit", "interrupted", "locked", "modes_of", "not_written", "recover", "to_make"]

_COMMIT = "commit"
_ROLLBACK = "rollback"
_FINISHED = "finished"


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Keep others from changing the same project meanwhile; finish first what was interrupted.

    Raises:
        UsageError: Another process is at it, or the folder cannot be opened.
    """
    try:
        handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UsageError(
            str(root), f"cannot be opened: {error.strerror}.", next_step="Name the project's folder."
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                raise UsageError(
                    str(root), "another rocmend is changing this project.", next_step="Wait until it is done."
                ) from error
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:  # a file system without locks
                raise
        yield
    finally:
        os.close(handle)


def not_written(root: Path, error: OSError) -> RocmendError:
    """Return what to say of an error of the file system: a disk that is full, a folder that is not writable."""
    work = folder(root) / "transaction"
    if not work.is_dir():
        why = "Nothing was changed."
    elif (work / _COMMIT).exists() and not (work / _ROLLBACK).exists():
        why = "Everything was changed, and the record of it is not complete."
    else:
        why = "What was begun was not taken back to the end."
    again = "." if not work.is_dir() else ": it finishes what was begun, or takes it back."
    return RocmendError(
        str(error.filename or root),
        f"cannot be written: {error.strerror}.",
        why=why,
        next_step=f"Make room or give the right to write, and run the same again{again}",
    )


def modes_of(root: Path, changes: Sequence[Change]) -> list[int]:
    """Return the permissions of the files that changes are about, after checking that they are what they were.

    Raises:
        UsageError: A file is not what the change was computed from.
    """
    return [_checked(root, change.path, digest(change.before)) for change in changes]


def to_make(root: Path, changes: Sequence[Change]) -> list[str]:
    """Return the folders that changes need and that are not there, the outermost first."""
    wanted: set[str] = set()
    for change in changes:
        if change.after is not None:
            wanted |= {str(parent) for parent in PurePosixPath(change.path).parents if str(parent) != "."}
    return sorted(path for path in wanted if not (root / path).is_dir())


def commit(root: Path, changes: Sequence[Change], manifest: Manifest, inverse: bytes) -> None:
    """Make changes: all of them or none. The project is ``locked``.

    Args:
        root: The project's folder.
        changes: One a file.
        manifest: Of these changes, in their order.
        inverse: The patch that takes them back.

    Raises:
        UsageError: A file was changed by somebody else meanwhile; nothing was changed then.
        OSError: The disk is full, a folder is not writable. Nothing was changed then; or all was, and only the
            record of it could not be completed, which the next call does.
    """
    work = folder(root) / "transaction"
    _make_state(work)
    try:
        _record(work, changes, manifest, inverse)
        _stage(root, changes, manifest)
        _write(work / _COMMIT, b"")
        _sync(work)
        _move(root, manifest)
    except BaseException:
        _back(root, work, Generation(work) if (work / MANIFEST).exists() else None)
        raise
    _finish(root, work, manifest)


def interrupted(root: Path) -> bool:
    """Tell whether a run was interrupted that ``recover`` would finish or take back."""
    return (folder(root) / "transaction").is_dir()


def recover(root: Path) -> str:
    """Finish or take back what was interrupted, and say so; empty where nothing was. The project is ``locked``.

    Raises:
        DataError: The record of it cannot be read.
        OSError: The same thing is in the way that was then.
    """
    work = folder(root) / "transaction"
    if not work.is_dir():
        _remove_state(work.parent)
        return ""
    if not (work / MANIFEST).exists():
        _back(root, work, None)
        return "An interrupted run had changed nothing yet; its remains were removed."
    interrupted = Generation(work)
    manifest = interrupted.manifest
    if (work / _FINISHED).exists():
        _finish(root, work, manifest)
        return "An interrupted undo was finished."
    if (work / _COMMIT).exists() and not (work / _ROLLBACK).exists():
        try:
            _move(root, manifest)
        except UsageError:
            _back(root, work, interrupted)
            return "An interrupted run was taken back: a file was changed since, and was left as it is."
        _finish(root, work, manifest)
        return f"An interrupted {'undo' if manifest.drops else 'port'} was finished."
    _back(root, work, interrupted)
    return "An interrupted run was taken back."


def _make_state(work: Path) -> None:
    for path in (work.parent.parent, work.parent):
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            _sync(path.parent)
    ignore = work.parent / ".gitignore"
    if not ignore.exists() or not ignore.stat().st_size:
        _write(ignore, b"*\n")
    work.mkdir()
    _sync(work.parent)


def _record(work: Path, changes: Sequence[Change], manifest: Manifest, inverse: bytes) -> None:
    originals = work / ORIGINALS
    originals.mkdir()
    kept = {digest(change.before): change.before for change in changes if change.before is not None}
    for name, data in kept.items():
        _write(originals / f"{name}.zst", compressed(data))
    _write(work / INVERSE, inverse)
    _sync(originals)
    document = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    _write(work / f"{MANIFEST}.part", document)
    (work / f"{MANIFEST}.part").replace(work / MANIFEST)
    _sync(work)


def _stage(root: Path, changes: Sequence[Change], manifest: Manifest) -> None:
    for made in () if manifest.drops else manifest.made_folders:
        (root / made).mkdir()
        _sync((root / made).parent)
    for at, (change, entry) in enumerate(zip(changes, manifest.entries, strict=True)):
        if change.after is not None:
            _write(_staged(root, entry, at), change.after, mode=entry.mode, like=root / entry.path)
    for path in {(root / entry.path).parent for entry in manifest.entries}:
        _sync(path)


def _staged(root: Path, entry: Entry, at: int) -> Path:
    """Return where a file's new bytes wait: beside it, under a name that is never too long."""
    return (root / entry.path).parent / f".rocmend-port-{at}.new"


def _move(root: Path, manifest: Manifest) -> None:
    """Move what waits into place. What was moved before an interruption is found done."""
    for at, entry in enumerate(manifest.entries):
        path, waiting = root / entry.path, _staged(root, entry, at)
        if digest_at(path) == entry.after:
            waiting.unlink(missing_ok=True)
            continue
        _checked(root, entry.path, entry.before)
        if not entry.after:
            path.unlink()
        elif waiting.exists():
            waiting.replace(path)
        else:
            raise UsageError(str(path), "its new content is gone.", next_step="Run it again.")
    for path in {(root / entry.path).parent for entry in manifest.entries}:
        _sync(path)


def _finish(root: Path, work: Path, manifest: Manifest) -> None:
    if not manifest.drops:
        names = [int(path.name) for path in work.parent.iterdir() if path.name.isdigit()]
        work.replace(work.parent / f"{max(names, default=0) + 1:04d}")
        with contextlib.suppress(OSError):  # all is done; were the new name lost, it would be given again
            _sync(work.parent)
        return
    if not (work / _FINISHED).exists():
        _write(work / _FINISHED, b"")
        _sync(work)
    for name in manifest.drops:
        _drop(work.parent / name, manifest.keeps)
    _remove_folders(root, manifest)
    _remove(work)
    _remove_state(work.parent)


def _drop(path: Path, keeps: Sequence[str]) -> None:
    """Remove a generation, but for what it knows of files that were kept."""
    if not (path / MANIFEST).exists():
        _remove(path)
        return
    manifest = Generation(path).manifest
    left = tuple(entry for entry in manifest.entries if entry.path in keeps)
    if not left:
        _remove(path)
        return
    write_atomic(path / INVERSE, only((path / INVERSE).read_bytes(), keeps))
    document = msgspec.json.encode(msgspec.structs.replace(manifest, entries=left))
    write_atomic(path / MANIFEST, msgspec.json.format(document, indent=1) + b"\n")
    needed = {f"{entry.before}.zst" for entry in left}
    for original in (path / ORIGINALS).iterdir():
        if original.name not in needed:
            original.unlink()


def _back(root: Path, work: Path, begun: Generation | None) -> None:
    """Take a transaction back: files that were moved into place get their bytes again; what others changed stays."""
    if begun is not None:
        moved = (work / _COMMIT).exists()
        _write(work / _ROLLBACK, b"")
        _sync(work)
        for at, entry in enumerate(begun.manifest.entries):
            path, waiting = root / entry.path, _staged(root, entry, at)
            waiting.unlink(missing_ok=True)
            if not moved or entry.before == entry.after or digest_at(path) != entry.after:
                continue
            original = begun.original(entry)
            if original is None:
                path.unlink()
            else:
                _write(waiting, original, mode=entry.mode, like=path)
                waiting.replace(path)
        for path in {(root / entry.path).parent for entry in begun.manifest.entries}:
            if path.is_dir():
                _sync(path)
        if not begun.manifest.drops:
            _remove_folders(root, begun.manifest)
    _remove(work)
    _remove_state(work.parent)


def _checked(root: Path, path: str, wanted: str) -> int:
    """Return a file's permissions, 0 where there is none; raise where it is not what it has to be."""
    full = root / path
    try:
        status = full.lstat()
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise UsageError(str(full), "is no longer a regular file.", next_step="Analyse the project again.")
    if digest_at(full) != wanted:
        what = "has appeared" if not wanted else "was removed" if status is None else "was changed"
        raise UsageError(
            str(full),
            f"{what} since the change to it was computed; nothing was written.",
            next_step="Analyse the project again.",
        )
    return stat.S_IMODE(status.st_mode) if status else 0


def _write(path: Path, data: bytes, *, mode: int = 0, like: Path | None = None) -> None:
    """Write a new file and flush it; with the permissions, owner and attributes of another where it has one."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        if like is not None and mode:
            _resemble(handle, path, like)
            os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _resemble(handle: int, path: Path, like: Path) -> None:
    """Give a file another's owner and extended attributes, as far as we may."""
    try:
        status = like.stat()
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):
        os.fchown(handle, status.st_uid, status.st_gid)
    with contextlib.suppress(OSError):  # a file system without them
        for name in os.listxattr(like):
            os.setxattr(path, name, os.getxattr(like, name))


def _sync(path: Path) -> None:
    """Flush a folder's names."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    """Remove a folder of ours. Its manifest goes last: without it, nothing says what else to clean."""
    if not path.is_dir():
        return
    for inner in sorted(path.iterdir(), key=lambda one: (one.name == _FINISHED, one.name == MANIFEST, one.name)):
        if inner.is_dir():
            _remove(inner)
        else:
            inner.unlink()
    path.rmdir()


def _remove_folders(root: Path, manifest: Manifest) -> None:
    """Remove the folders that were made, where nothing of others is in them."""
    for path in reversed(manifest.made_folders):
        with contextlib.suppress(OSError):
            (root / path).rmdir()


def _remove_state(state: Path) -> None:
    """Remove the project's ``.rocmend/port`` where no port is left in it, and ``.rocmend`` where it is then empty."""
    if state.is_dir():
        if any(path.name != ".gitignore" for path in state.iterdir()):
            return
        (state / ".gitignore").unlink(missing_ok=True)
        state.rmdir()
    with contextlib.suppress(OSError):
        state.parent.rmdir()
