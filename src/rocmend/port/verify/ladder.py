"""The levels of proof: what is run, in which order, and what it says.

A level that does not run says why, and nothing more: its name never stands beside a result that it did not have.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import msgspec

from rocmend.core.errors import RocmendError, UsageError
from rocmend.port.verify.execution import Execution, Step, request_text
from rocmend.port.verify.job import Job, Progress
from rocmend.port.verify.records import Level, Proof, Status
from rocmend.port.verify.result import not_run

__all__ = ["LEVELS", "Rung", "beyond", "planned", "up_to", "verify"]


class Rung(NamedTuple):
    """A level and its place.

    Args:
        name: What it is called on the command line.
        title: What it proves.
        module: Where ``run(job) -> Level`` is; ``absent(job) -> str`` for the levels that not every machine can run;
            and ``steps(job)`` where it executes code of the project.
        executes: Whether it does.
    """

    name: str
    title: str
    module: str
    executes: bool = False


LEVELS = (
    Rung("identity", "without ROCm, the port is identical to the original", "identity"),
    Rung("static", "no CUDA-only names are left on the ROCm side", "static"),
    Rung("compile", "the ROCm side compiles for wave32 and wave64", "compiles"),
    Rung("emulated", "the AMD machine code, executed on the CPU, gives the original's results", "emulated"),
    Rung("nvidia", "on NVIDIA, the machine code and the output are unchanged", "nvidia", executes=True),
    Rung("python", "the Python code works with and without ROCm", "python_run", executes=True),
    Rung("amd", "it runs on an AMD GPU", "amd", executes=True),
)
_NAMES = tuple(rung.name for rung in LEVELS)


def up_to(name: str) -> tuple[str, ...]:
    """Return the names of the levels up to and with one.

    Raises:
        UsageError: There is no such level.
    """
    _checked([name])
    return _NAMES[: _NAMES.index(name) + 1]


def verify(  # noqa: PLR0913  a run is told what to prove, for what and how
    root: Path,
    *,
    levels: Sequence[str] = (),
    targets: Sequence[str] = (),
    progress: Progress | None = None,
    jobs: int = 2,
    cache: bool = True,
    execution: Execution | None = None,
) -> Proof:
    """Prove a port as far as this machine can, and as far as was asked for.

    Args:
        root: The project's folder.
        levels: Names of the levels to run; all where none is named (``up_to`` gives those up to one).
        targets: The gfx targets to prove it for; where none is named, those the port was made for, else one with
            wavefronts of 32 lanes and one with 64.
        progress: Is told the level, how many of its parts are done, and of how many.
        jobs: Compilers at once.
        cache: Whether what was compiled before is used and kept.
        execution: How the project's code is executed; None: none of it is, and the levels that would say so.

    Raises:
        UsageError: There is no such folder, level or target.
    """
    _checked(levels)
    with Job(root, targets, progress, jobs=jobs, cache=cache, execution=execution) as job:
        wanted = [(number, rung) for number, rung in enumerate(LEVELS, 1) if not levels or rung.name in levels]
        made = tuple(_run(job, number, rung) for number, rung in wanted)
        generation = job.generations[-1].name if job.generations else ""
        return Proof(str(root), job.targets, made, generation, execution)


def planned(root: Path, *, levels: Sequence[str] = (), execution: Execution | None = None) -> tuple[Step, ...]:
    """Return what levels would execute of a project, without executing any of it.

    Args:
        root: The project's folder.
        levels: Names of the levels; all where none is named.
        execution: How it would be executed: a container has an interpreter of its own.

    Raises:
        UsageError: There is no such folder or level.
        DataError: The record of the port is damaged.
    """
    _checked(levels)
    with Job(root, execution=execution) as job:
        wanted = [rung for rung in LEVELS if rung.executes and (not levels or rung.name in levels)]
        return tuple(step for rung in wanted for step in _module(rung).steps(job))


def _module(rung: Rung) -> ModuleType:
    return import_module(f"rocmend.port.verify.{rung.module}")


def beyond(proof: Proof, root: Path, why: str) -> Proof:
    """Return a proof with the levels that are not in it as not run, each with its command where it can run here.

    Args:
        proof: The proof.
        root: The folder that was looked at: the proof can name the project that it is a copy of.
        why: Why those were not run that can.
    """
    there = {level.name for level in proof.levels}
    rest: list[Level] = []
    with Job(root, proof.targets) as job:
        for number, rung in enumerate(LEVELS, 1):
            if rung.name in there:
                continue
            absent = _module(rung).absent(job)
            told = absent or (f"{why}; it executes the project's code" if rung.executes else why)
            command = "" if absent else request_text(Path(proof.root), rung.name, proof.targets, run=rung.executes)
            rest.append(Level(number, rung.name, rung.title, Status.NOT_RUN, why=told, command=command))
    return msgspec.structs.replace(proof, levels=(*proof.levels, *rest))


def _run(job: Job, number: int, rung: Rung) -> Level:
    started = time.monotonic()
    try:
        made: Level = _module(rung).run(job)
        if rung.executes and job.execution is not None and made.ran:
            made = msgspec.structs.replace(made, steps=tuple(_module(rung).steps(job)))
    except RocmendError as error:  # a damaged record of the port, a compiler that is not there
        made = not_run(str(error))
    return msgspec.structs.replace(
        made,
        number=number,
        name=rung.name,
        title=rung.title,
        time_ms=round((time.monotonic() - started) * 1000, 1),
    )


def _checked(levels: Sequence[str]) -> None:
    unknown = [name for name in levels if name not in _NAMES]
    if unknown:
        raise UsageError("port verify", f"there is no level {unknown[0]!r}.", next_step=f"Levels: {', '.join(_NAMES)}.")
