"""A project's Python side as it was, as it is, as the port is on CUDA, and as it is on ROCm: a folder each."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import stat
import sys
from enum import StrEnum
from pathlib import Path

from rocmend.core.errors import DataError
from rocmend.core.host_memory import available_bytes
from rocmend.core.mounts import file_system
from rocmend.core.units import size_text
from rocmend.port.edits import applied
from rocmend.port.python.file import PythonFile
from rocmend.port.python.flags import FLAG_MODULE, proven_names
from rocmend.port.records import Edit
from rocmend.port.verify.job import Job

__all__ = ["MAX_BYTES", "MAX_FILES", "SIDES", "TreeSide", "forced", "grow"]

MAX_FILES = 50_000
MAX_BYTES = 4 << 30
_SHARE_OF_ROOM = 0.9
"""Of what is free, that the copies may take."""
_FICLONE = 0x40049409
"""Source: ioctl_ficlone(2), <linux/fs.h>"""
_LEFT_OUT = {"__pycache__", "node_modules", "site-packages"}


class TreeSide(StrEnum):
    """What a folder holds."""

    ORIGINAL = "original"
    CUDA = "cuda"
    ROCM = "rocm"
    PRESENT = "present"
    """The project as it is, with the flag as it finds it."""


SIDES = (TreeSide.ORIGINAL, TreeSide.CUDA, TreeSide.ROCM)
"""What is compared."""


def forced(path: str, data: bytes, value: bool) -> bytes:
    """Return a Python file in which the flag is what it is told to be, where it is defined.

    Definitions are those that a port writes, and a project's own that are proven to say the same.
    """
    if b"rocm" not in data and b"hip" not in data:
        return data
    try:
        file = PythonFile(path, data)
        proven = proven_names(file)
    except (DataError, RecursionError):
        return data
    defined = [node for node in proven.values() if isinstance(node, ast.Assign)]
    for node in file.module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            ours = node.value.func.id == "_is_rocm" and Path(path).stem == FLAG_MODULE
            if ours or node.value.func.id == "_torch_is_for_rocm":
                defined.append(node)
    return applied(data, [Edit(*file.span(node.value), str(value).encode()) for node in defined])


def grow(job: Job, side: TreeSide) -> Path:
    """Return a new folder that holds the project as one side has it, all of it copies: a test may write to any file.

    What is no regular file, and links that lead out of the project, are left out.

    Raises:
        DataError: The project has more files or bytes than are copied, or than there is room for.
    """
    folder = job.scratch() / job.root.resolve().name
    folder.mkdir()
    before = {part.path: part.before for part in job.parts}
    folders, files = _listed(job)
    _check_room(folder, files, copies=len(SIDES) - SIDES.index(side) if side in SIDES else 1)
    for here in folders:
        (folder / here).mkdir(exist_ok=True)
    for file in files:
        path = file.relative_to(job.root).as_posix()
        if path.endswith((".py", ".pyi")):
            _put(job, folder / path, path, side, before)
        elif path not in before or side is not TreeSide.ORIGINAL:
            _copy(job, path, folder / path)
        elif (data := before[path]) is not None:
            (folder / path).write_bytes(data)
    return folder


def _listed(job: Job) -> tuple[list[Path], list[Path]]:
    """Return the folders of the project, relative to it, and the files that are copied."""
    folders: list[Path] = []
    held: list[Path] = []
    count = size = 0
    for parent, names, files in os.walk(job.root):
        names[:] = [name for name in names if not name.startswith(".") and name not in _LEFT_OUT]
        names[:] = [name for name in names if not (Path(parent, name) / "pyvenv.cfg").exists()]
        here = Path(parent).relative_to(job.root)
        folders.append(here)
        count += len(files)
        found = [job.root / here / name for name in files if job.holds(here / name)]
        size += sum(file.stat().st_size for file in found)
        if count > MAX_FILES or size > MAX_BYTES:
            most = f"{MAX_FILES} files or {size_text(MAX_BYTES)}"
            raise DataError("port verify", f"{job.root} has more than {most}, too much to copy.")
        held += found
    return folders, held


def _check_room(folder: Path, files: list[Path], *, copies: int) -> None:
    """Refuse where there is no room for the copies, which would fill a disk or the memory.

    Nothing is refused where copies share their bytes until one of them is written to.

    Raises:
        DataError: There is too little room.
    """
    if not files:
        return
    sizes = {file: file.stat().st_size for file in files}
    largest = max(files, key=sizes.__getitem__)
    needed = sum(sizes.values()) * copies
    free = shutil.disk_usage(folder).free
    in_memory = file_system(folder.resolve()) in {"tmpfs", "ramfs"}
    if in_memory:
        free = min(free or sys.maxsize, available_bytes())  # ramfs says that it has nothing
    if needed <= free * _SHARE_OF_ROOM or _can_share(largest, folder):
        return
    place = f"{folder.parents[2]}{', which is in memory,' if in_memory else ''}"
    raise DataError(
        "port verify",
        f"{copies} copies of the project would take {size_text(needed)}, and {place} has {size_text(free)} free "
        "(a tenth is kept free).",
        why=f"The code runs in copies, because it may write to its files; the largest is {largest} "
        f"({size_text(sizes[largest])}).",
        next_step="Set TMPDIR to a folder on a disk with more room (one on the project's own btrfs or XFS needs "
        "none), or move large files out of the project.",
    )


def _can_share(file: Path, folder: Path) -> bool:
    """Tell whether a copy of a file in a folder takes no room."""
    probe = folder / ".rocmend-probe"
    try:
        return _shared(file, probe)
    finally:
        probe.unlink(missing_ok=True)


def _shared(file: Path, to: Path) -> bool:
    """Make a file that shares another's bytes; return whether the file system can."""
    try:
        with file.open("rb") as source, to.open("wb") as target:
            _share(source.fileno(), target.fileno())
    except OSError:
        return False
    return True


def _share(source: int, target: int) -> None:
    fcntl.ioctl(target, _FICLONE, source)


def _copy(job: Job, path: str, place: Path) -> None:
    """Copy a file with its permissions; one that has become a link out of the project is an error.

    Where the file system can, the bytes are shared until one of both is written to.
    """
    with job.tree.opened(job.tree.within(path)) as handle, place.open("wb") as made:
        try:
            _share(handle, made.fileno())
        except OSError:
            with os.fdopen(handle, "rb", closefd=False) as file:
                shutil.copyfileobj(file, made)
        os.fchmod(made.fileno(), stat.S_IMODE(os.fstat(handle).st_mode) & 0o777)


def _put(job: Job, place: Path, path: str, side: TreeSide, before: dict[str, bytes | None]) -> None:
    data = before[path] if side is TreeSide.ORIGINAL and path in before else job.read(path)
    if data is None:
        return
    if side in {TreeSide.CUDA, TreeSide.ROCM}:
        data = forced(path, data, side is TreeSide.ROCM)
    place.write_bytes(data)
