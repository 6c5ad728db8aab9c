"""A project's Python side as it was, as it is, as the port is on CUDA, and as it is on ROCm: a folder each."""

from __future__ import annotations

import ast
import os
import shutil
import stat
from enum import StrEnum
from pathlib import Path

from rocmend.core.errors import DataError
from rocmend.core.units import size_text
from rocmend.port.edits import applied
from rocmend.port.python.file import PythonFile
from rocmend.port.python.flags import FLAG_MODULE, proven_names
from rocmend.port.records import Edit
from rocmend.port.verify.job import Job

__all__ = ["MAX_BYTES", "MAX_FILES", "SIDES", "TreeSide", "forced", "grow"]

MAX_FILES = 50_000
MAX_BYTES = 4 << 30
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
        DataError: The project has more files or bytes than are copied.
    """
    folder = job.scratch() / job.root.resolve().name
    folder.mkdir()
    before = {part.path: part.before for part in job.parts}
    count = size = 0
    for parent, names, files in os.walk(job.root):
        names[:] = [name for name in names if not name.startswith(".") and name not in _LEFT_OUT]
        names[:] = [name for name in names if not (Path(parent, name) / "pyvenv.cfg").exists()]
        here = Path(parent).relative_to(job.root)
        (folder / here).mkdir(exist_ok=True)
        count += len(files)
        held = [name for name in files if job.holds(here / name)]
        size += sum((job.root / here / name).stat().st_size for name in held)
        if count > MAX_FILES or size > MAX_BYTES:
            most = f"{MAX_FILES} files or {size_text(MAX_BYTES)}"
            raise DataError("port verify", f"{job.root} has more than {most}: that is not copied.")
        for name in held:
            path = (here / name).as_posix()
            if name.endswith((".py", ".pyi")):
                _put(job, folder / here / name, path, side, before)
            elif path not in before or side is not TreeSide.ORIGINAL:
                _copy(job, path, folder / here / name)
            elif (data := before[path]) is not None:
                (folder / here / name).write_bytes(data)
    return folder


def _copy(job: Job, path: str, place: Path) -> None:
    """Copy a file with its permissions; one that has become a link out of the project is an error."""
    with job.tree.opened(job.tree.within(path)) as handle, place.open("wb") as made:
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
