"""A project as part of a check: planned, ported in a copy, and proven there. The project itself is not changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rocmend.cli.porting import Ported, analysed, ported
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.scratch import ScratchFolder
from rocmend.core.units import size_text
from rocmend.port.apply import apply, changes, diff
from rocmend.port.records import Analysis
from rocmend.port.state import generations
from rocmend.port.verify.ladder import beyond, up_to, verify
from rocmend.port.verify.records import Proof

__all__ = ["CheckedProject", "check_project"]

LARGEST = 512 << 20
"""Bytes of a project that is copied to be proven."""

_NOT_COPIED = (".git", ".hg", ".venv", "venv", "node_modules", "build", "__pycache__")
_LEFT_OUT = shutil.ignore_patterns(*_NOT_COPIED, ".rocmend")
_LEFT_OUT_OF_PORTED = shutil.ignore_patterns(*_NOT_COPIED)


class CheckedProject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check says of a project.

    Attributes:
        port: What it is, what needs a port, what would be done.
        diff: The port as a patch, as far as it is text.
        proof: How far the port was proven; None where it was not.
        not_proven: Why it was not.
    """

    port: Ported
    diff: str
    proof: Proof | None = None
    not_proven: str = ""

    @property
    def serious(self) -> bool:
        """Whether something in it needs a port or a person, or a proof does not hold."""
        return self.port.open or (self.proof is not None and self.proof.failed)


def check_project(path: Path, targets: Sequence[str], progress: Callable[[str], None]) -> CheckedProject:
    """Plan the port of a project and prove it in a copy, as far as it compiles.

    Args:
        path: The project's folder.
        targets: The gfx targets that it is for.
        progress: Told what is being done.
    """

    def read(done: int, of: int) -> None:
        progress(f"reading the project, {done} of {of} candidate files")

    analysis = analysed(path, targets=targets, progress=read)
    planned = ported(path, analysis, write=False)
    patch = diff(changes(analysis)).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        proof: Proof | None = _proven(path, targets, progress)
        why = ""
    except RocmendError as error:
        proof, why = None, str(error)
    except OSError as error:  # the copy: a folder that cannot be listed, a disk that is full
        proof, why = None, f"the project cannot be copied: {error}"
    return CheckedProject(planned, patch, proof, why)


def _proven(path: Path, targets: Sequence[str], progress: Callable[[str], None]) -> Proof:
    """Port a copy and verify it up to level compile."""
    # The originals of an applied port are what it is compared with.
    left_out = _LEFT_OUT_OF_PORTED if generations(path) else _LEFT_OUT
    size = _size(path, left_out)
    if size > LARGEST:
        raise UsageError(
            str(path),
            f"is {size_text(size)}: too large to copy for verification.",
            next_step="Apply the port and run `rocmend port verify`.",
        )

    def told(name: str, done: int, of: int) -> None:
        progress(f"proving the port, {name}: {done} of {of}")

    with ScratchFolder("port") as scratch:
        copy = scratch / (path.resolve().name or "project")
        shutil.copytree(path, copy, symlinks=True, ignore=left_out, copy_function=_copied)
        analysis: Analysis = analysed(copy, targets=targets)
        apply(analysis, allow_dirty=True, compile_first=False)  # level compile tells
        proof = verify(copy, levels=up_to("compile"), targets=targets, progress=told)
        return beyond(msgspec.structs.replace(proof, root=str(path)), copy, "a check stops after level compile")


def _copied(source: str, target: str) -> str:
    """Copy a regular file that may be read; a port reads no others."""
    if stat.S_ISREG(os.lstat(source).st_mode):
        with contextlib.suppress(PermissionError):
            shutil.copy2(source, target)
    return target


def _size(path: Path, left_out: Callable[[str, list[str]], set[str]]) -> int:
    """Return the bytes of a folder's files, without those that are left out of the copy."""
    total = 0
    for folder, folders, files in os.walk(path):
        ignored = left_out(folder, [*folders, *files])
        folders[:] = [name for name in folders if name not in ignored]
        total += sum((Path(folder) / name).lstat().st_size for name in files if name not in ignored)
    return total
