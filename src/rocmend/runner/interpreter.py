"""The interpreter whose torch is used, and how a child of it finds rocmend."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.scratch import ScratchFolder
from rocmend.machine.software.python_env import IN_FOLDER

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine


class InterpreterError(RocmendError):
    """No interpreter may be used."""

    code = "interpreter"


def interpreter_of(asked: str | None, machine: Machine | None) -> str:
    """Return the path of the interpreter: the one asked for, that of the environment the facts are about, or our own.

    Raises:
        UsageError: There is none.
        InterpreterError: It came with the working folder, and nobody asked for it.
    """
    chosen = asked or (str(machine.value("python.executable", "")) if machine is not None else "") or sys.executable
    found = shutil.which(chosen)
    if found is None:
        raise UsageError(
            "--python", f"there is no program {chosen}.", next_step="Give the path of a Python interpreter."
        )
    if not asked and machine is not None and machine.value("python.found_by") == IN_FOLDER:
        folder = str(machine.value("python.prefix"))
        if folder != sys.prefix:
            raise InterpreterError(
                folder,
                "this environment was found in the working folder, and nothing in that is run unasked.",
                why="The folder may be somebody else's project.",
                next_step=f"If it is yours, activate it, or say --python {shlex.quote(folder)}.",
            )
    return str(Path(found).absolute())


@contextmanager
def importable() -> Iterator[Path]:
    """Yield a working folder from which any interpreter finds rocmend, and nothing of rocmend's environment."""
    with ScratchFolder("torch") as home:
        (home / "rocmend").symlink_to(Path(__file__).resolve().parents[1])
        yield home
