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
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.errors import RocmendError, UsageError
from rocmend.port.patch import only
from rocmend.port.records import Change
from rocmend.port.state import (
    INVERSE,
    MANIFEST,
    MAX_TOTAL_BYTES,
    MOST_GENERATIONS,
    ORIGINALS,
    STATE,
    WORK,
    Entry,
    Generation,
    Manifest,
    check_sizes,
    compressed,
    digest,
    digest_at,
    numbers,
    opened,
    refuse_foreign,
)

__all__ = ["commit", "interrupted", "locked", "modes_of", "not_written", "recover", "restored_mode", "to_make"]

_COMMIT = f"{WORK}/commit"
_ROLLBACK = f"{WORK}/rollback"
_FINISHED = f"{WORK}/finished"
_IGNORE = f"{STATE}/.gitignore"
_LAST = (MANIFEST, "finished")
"""A record's manifest goes after its other files: without it, nothing says what else to clean."""


@contextlib.contextmanager
def locked(root: Path) -> Iterator[Beneath]:
    """Open a project and keep others from changing it meanwhile.

    Raises:
        UsageError: Another process is at it, or the folder cannot be opened.
    """
    with opened(root) as tree:
        try:
            fcntl.flock(tree.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                raise UsageError(
                    str(root), "another rocmend process is changing this project.", next_step="Wait until it is done."
                ) from error
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:  # a file system without locks
                raise
        yield tree


def not_written(tree: Beneath, error: OSError) -> RocmendError:
    """Return what to say of an error of the file system: a disk that is full, a folder that is not writable."""
    begun = tree.is_folder(WORK)
    if not begun:
        why = "Nothing was changed."
    elif tree.stat(_COMMIT) and not tree.stat(_ROLLBACK):
        why = "All changes were made, but their record is incomplete."
    else:
        why = "The changes could not be fully reverted."
    again = ": it finishes or reverts the changes." if begun else "."
    return RocmendError(
        str(error.filename or tree.root),
        f"cannot be written: {error.strerror}.",
        why=why,
        next_step=f"Free disk space or fix permissions, and run the command again{again}",
    )


def modes_of(tree: Beneath, changes: Sequence[Change]) -> list[int]:
    """Return the permissions of the files that changes are about, after checking that they are what they were.

    Raises:
        UsageError: A file is not what the change was computed from.
    """
    return [_checked(tree, change.path, digest(change.before)) for change in changes]


def restored_mode(recorded: int, current: int) -> int:
    """Return the permissions of a file that is taken back: never one that the file does not have now.

    The record lies in the project, and could say anything.

    Args:
        recorded: What the record says that it had; 0 where it says nothing.
        current: What it has; 0 where it is not there, and comes back with nothing that others could write.
    """
    if not current:
        return recorded & 0o755
    return recorded & current & 0o777 or current & 0o777


def to_make(tree: Beneath, changes: Sequence[Change]) -> list[str]:
    """Return the folders that changes need and that are not there, the outermost first."""
    wanted: set[str] = set()
    for change in changes:
        if change.after is not None:
            wanted |= {str(parent) for parent in PurePosixPath(change.path).parents if str(parent) != "."}
    return sorted(path for path in wanted if not tree.is_folder(path))


def commit(tree: Beneath, changes: Sequence[Change], manifest: Manifest, inverse: bytes) -> None:
    """Make changes: all of them or none. The project is ``locked``.

    Args:
        tree: The project's folder.
        changes: One a file.
        manifest: Of these changes, in their order.
        inverse: The patch that takes them back.

    Raises:
        UsageError: A file was changed by somebody else meanwhile; nothing was changed then.
        UnsafePathError: A file or folder is a link; nothing was changed then.
        OSError: The disk is full, a folder is not writable. Nothing was changed then; or all was, and only the
            record of it could not be completed, which the next call does.
    """
    _check_room(tree, changes, manifest)
    _make_state(tree)
    try:
        _record(tree, changes, manifest, inverse)
        _stage(tree, changes, manifest)
        tree.create(_COMMIT, b"")
        tree.sync(WORK)
        _move(tree, manifest)
    except BaseException:
        _back(tree, Generation(tree, "transaction") if tree.stat(f"{WORK}/{MANIFEST}") else None)
        raise
    _finish(tree, manifest)


def interrupted(root: Path) -> bool:
    """Tell whether a run was interrupted that ``recover`` would finish or take back."""
    try:
        with Beneath(root) as tree:
            return tree.is_folder(WORK)
    except OSError:
        return False


def recover(tree: Beneath) -> str:
    """Finish or take back what was interrupted, and say so; empty where nothing was. The project is ``locked``.

    Raises:
        DataError: The record of it cannot be read, or leads out of the project.
        UsageError: The record of it was not made here.
        OSError: The same thing is in the way that was then.
    """
    if not tree.is_folder(WORK):
        _remove_state(tree)
        return ""
    refuse_foreign(tree, ["transaction"])
    if not tree.stat(f"{WORK}/{MANIFEST}"):
        _back(tree, None)
        return "An interrupted run had changed nothing yet; its temporary files were removed."
    begun = Generation(tree, "transaction")
    manifest = begun.manifest
    if tree.stat(_FINISHED):
        _finish(tree, manifest)
        return "An interrupted undo was finished."
    if tree.stat(_COMMIT) and not tree.stat(_ROLLBACK):
        try:
            _move(tree, manifest)
        except UsageError:
            _back(tree, begun)
            return "An interrupted run was reverted; a file that was changed since was left unchanged."
        _finish(tree, manifest)
        return f"An interrupted {'undo' if manifest.drops else 'port'} was finished."
    _back(tree, begun)
    return "An interrupted run was reverted."


def _check_room(tree: Beneath, changes: Sequence[Change], manifest: Manifest) -> None:
    """Raise, before anything is written, where the record has no room or a name that is needed is taken."""
    check_sizes(tree, changes)
    if not manifest.drops and len(numbers(tree)) >= MOST_GENERATIONS:
        raise UsageError(str(tree.root / STATE), f"holds {MOST_GENERATIONS} ports.", next_step="Undo them.")
    for at, entry in enumerate(manifest.entries):
        staged = _staged(entry, at)
        if tree.stat(staged):
            raise UsageError(
                str(tree.root / staged), "already exists where new content is written.", next_step="Remove it."
            )


def _make_state(tree: Beneath) -> None:
    for path in (".rocmend", STATE):
        if not tree.is_folder(path):
            tree.mkdir(path)
            tree.sync(path.rpartition("/")[0])
    if digest_at(tree, _IGNORE) != digest(b"*\n"):
        tree.unlink(_IGNORE, missing_ok=True)
        tree.create(_IGNORE, b"*\n")
    tree.mkdir(WORK)
    tree.sync(STATE)


def _record(tree: Beneath, changes: Sequence[Change], manifest: Manifest, inverse: bytes) -> None:
    originals = f"{WORK}/{ORIGINALS}"
    tree.mkdir(originals)
    kept = {digest(change.before): change.before for change in changes if change.before is not None}
    for name, data in kept.items():
        tree.create(f"{originals}/{name}.zst", compressed(data))
    tree.create(f"{WORK}/{INVERSE}", inverse)
    tree.sync(originals)
    tree.create(f"{WORK}/{MANIFEST}.part", _document(manifest))
    tree.replace(f"{WORK}/{MANIFEST}.part", f"{WORK}/{MANIFEST}")
    tree.sync(WORK)


def _document(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def _stage(tree: Beneath, changes: Sequence[Change], manifest: Manifest) -> None:
    for made in () if manifest.drops else manifest.made_folders:
        tree.mkdir(made)
        tree.sync(_folder(made))
    for at, (change, entry) in enumerate(zip(changes, manifest.entries, strict=True)):
        if change.after is not None:
            tree.create(_staged(entry, at), change.after, mode=entry.mode, like=entry.path)
    _sync_folders(tree, manifest)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _sync_folders(tree: Beneath, manifest: Manifest) -> None:
    """Flush the folders of a manifest's files, those that are there."""
    for path in {_folder(entry.path) for entry in manifest.entries}:
        if tree.is_folder(path):
            tree.sync(path)


def _staged(entry: Entry, at: int) -> str:
    """Return where a file's new bytes wait: beside it, under a name that is never too long."""
    return f"{_folder(entry.path)}/.rocmend-port-{at}.new".lstrip("/")


def _move(tree: Beneath, manifest: Manifest) -> None:
    """Move what waits into place. What was moved before an interruption is found done."""
    for at, entry in enumerate(manifest.entries):
        waiting = _staged(entry, at)
        if digest_at(tree, entry.path) == entry.after:
            tree.unlink(waiting, missing_ok=True)
            continue
        _checked(tree, entry.path, entry.before)
        if not entry.after:
            tree.unlink(entry.path)
        elif _is_staged(tree, waiting, entry):
            tree.replace(waiting, entry.path)
        else:
            raise UsageError(str(tree.root / entry.path), "its new content is missing.", next_step="Run it again.")
    _sync_folders(tree, manifest)


def _is_staged(tree: Beneath, path: str, entry: Entry) -> bool:
    """Tell whether a file is what was written to be moved into place: these bytes, and no set-id bits."""
    status = tree.stat(path)
    plain = status is not None and not stat.S_IMODE(status.st_mode) & ~0o777
    return plain and digest_at(tree, path) == entry.after


def _finish(tree: Beneath, manifest: Manifest) -> None:
    if not manifest.drops:
        names = [int(name) for name in numbers(tree)]
        tree.replace(WORK, f"{STATE}/{max(names, default=0) + 1:04d}")
        with contextlib.suppress(OSError):  # all is done; were the new name lost, it would be given again
            tree.sync(STATE)
        return
    if not tree.stat(_FINISHED):
        tree.create(_FINISHED, b"")
        tree.sync(WORK)
    for name in manifest.drops:
        _drop(tree, name, manifest.keeps)
    _remove_folders(tree, manifest)
    tree.remove(WORK, _LAST)
    _remove_state(tree)


def _drop(tree: Beneath, name: str, keeps: Sequence[str]) -> None:
    """Remove a generation, but for what it knows of files that were kept."""
    path = f"{STATE}/{name}"
    left: tuple[Entry, ...] = ()
    if tree.is_folder(path) and tree.stat(f"{path}/{MANIFEST}"):
        manifest = Generation(tree, name).manifest
        left = tuple(entry for entry in manifest.entries if entry.path in keeps)
    if not left:
        tree.remove(path, _LAST)
        return
    tree.put(f"{path}/{INVERSE}", only(tree.read(f"{path}/{INVERSE}", MAX_TOTAL_BYTES), keeps))
    open_ = tuple(one for one in manifest.findings if one.path in keeps)
    tree.put(f"{path}/{MANIFEST}", _document(msgspec.structs.replace(manifest, entries=left, findings=open_)))
    needed = {f"{entry.before}.zst" for entry in left}
    for original in tree.names(f"{path}/{ORIGINALS}"):
        if original not in needed:
            tree.unlink(f"{path}/{ORIGINALS}/{original}")


def _back(tree: Beneath, begun: Generation | None) -> None:
    """Take a transaction back: files that were moved into place get their bytes again; what others changed stays.

    A file that cannot be taken back does not keep the others from it; the record then stays, for the next time.
    """
    if begun is not None:
        moved = tree.stat(_COMMIT) is not None
        if not tree.stat(_ROLLBACK):
            tree.create(_ROLLBACK, b"")
        tree.sync(WORK)
        failed: OSError | RocmendError | None = None
        for at in range(len(begun.manifest.entries)):
            try:
                _back_one(tree, begun, at, moved=moved)
            except (OSError, RocmendError) as error:
                failed = failed or error
        if failed is not None:
            raise failed
        _sync_folders(tree, begun.manifest)
        if not begun.manifest.drops:
            _remove_folders(tree, begun.manifest)
    tree.remove(WORK, _LAST)
    _remove_state(tree)


def _back_one(tree: Beneath, begun: Generation, at: int, *, moved: bool) -> None:
    entry = begun.manifest.entries[at]
    waiting = _staged(entry, at)
    tree.unlink(waiting, missing_ok=True)
    if not moved or entry.before == entry.after or digest_at(tree, entry.path) != entry.after:
        return
    original = begun.original(entry)
    if original is None:
        tree.unlink(entry.path)
    else:
        status = tree.stat(entry.path)
        mode = restored_mode(entry.mode, stat.S_IMODE(status.st_mode) if status else 0)
        tree.create(waiting, original, mode=mode, like=entry.path)
        tree.replace(waiting, entry.path)


def _checked(tree: Beneath, path: str, wanted: str) -> int:
    """Return a file's permissions, 0 where there is none; raise where it is not what it has to be."""
    status = tree.stat(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise UsageError(str(tree.root / path), "is no longer a regular file.", next_step="Analyse the project again.")
    if digest_at(tree, path) != wanted:
        what = "has appeared" if not wanted else "was removed" if status is None else "was changed"
        raise UsageError(
            str(tree.root / path),
            f"{what} since the change to it was computed; nothing was written.",
            next_step="Analyse the project again.",
        )
    return stat.S_IMODE(status.st_mode) if status else 0


def _remove_folders(tree: Beneath, manifest: Manifest) -> None:
    """Remove the folders that were made, where nothing of others is in them."""
    for path in reversed(manifest.made_folders):
        with contextlib.suppress(OSError):
            tree.rmdir(path)


def _remove_state(tree: Beneath) -> None:
    """Remove the project's ``.rocmend/port`` where no port is left in it, and ``.rocmend`` where it is then empty."""
    if not tree.is_folder(".rocmend"):
        return
    if tree.is_folder(STATE):
        if any(name != ".gitignore" for name in tree.names(STATE)):
            return
        tree.unlink(_IGNORE, missing_ok=True)
        tree.rmdir(STATE)
    with contextlib.suppress(OSError):
        tree.rmdir(".rocmend")
