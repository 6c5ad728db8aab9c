"""What of a project's own code for ROCm compiles before a port is written, and no longer would after it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocmend.codeobject.hip import Failure, HipFailure
from rocmend.codeobject.hip.headers import is_of_nvidia
from rocmend.codeobject.hip.toolchain import NoToolchainError, find_toolchain
from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.core.scratch import ScratchFolder
from rocmend.port.cuda.conditions import SAYS_ROCM
from rocmend.port.cuda.includes import closure
from rocmend.port.definitions.files import build_files, builds_above
from rocmend.port.records import Change
from rocmend.port.verify.compiles import compiled
from rocmend.port.verify.job import Job, Progress
from rocmend.port.verify.made import SAYS_NOTHING, Made
from rocmend.port.verify.units import Unit, reached, units_of

__all__ = ["Comparison", "Lost", "compared"]

_WAVE64 = "gfx942"
"""Read for where no target is asked for: code that counts on 32 lanes is wrong there."""


class Lost(NamedTuple):
    """A translation unit that compiles before a port and not after it.

    Attributes:
        path: Relative to the project.
        target: The gfx target.
        error: What the compiler says.
    """

    path: str
    target: str
    error: str


class Comparison(NamedTuple):
    """How a project and its port compile as HIP.

    Attributes:
        lost: What no longer compiles.
        units: How many units with code for ROCm of the project's own the port reaches.
        before: How many of them compile without it.
        untold: How many of them could not be compiled here.
        why_not: Why not; empty where all were, or there is nothing to compare.
        error: What the compiler says of the first unit that does not compile without it; empty where all do.
    """

    lost: tuple[Lost, ...] = ()
    units: int = 0
    before: int = 0
    untold: int = 0
    why_not: str = ""
    error: str = ""


def compared(
    root: Path, changes: Sequence[Change], targets: Sequence[str], *, progress: Progress | None = None, jobs: int = 2
) -> Comparison:
    """Compile what a port changes of a project's own code for ROCm, as it is and as it would be.

    Args:
        root: The project's folder.
        changes: What the port would write.
        targets: The gfx targets that it is for.
        progress: Is told how far it is.
        jobs: Compilers at once.
    """
    changed = [change.path for change in changes]
    with Job(root, targets, progress, jobs=jobs) as before:
        if not any(SAYS_ROCM.search(data) for data in before.sources.values()):
            return Comparison()
        concerned = [unit for unit in reached(units_of(before), before.sources, changed) if _for_rocm(unit, before)]
        if not concerned:
            return Comparison()
        try:
            tools = find_toolchain()
        except NoToolchainError as error:
            return Comparison(units=len(concerned), untold=len(concerned), why_not=str(error))
        wanted = before.targets or (_WAVE64,)
        made = compiled(before, concerned, wanted, tools, "before", generate=False)
        good = _good(made)
        untold = {one.unit.path: why for one in made if (why := _not_here(one))}
        why_not = next(iter(untold.values()), "")
        paths = {path for path, _ in good}
        first = next(_refused(made, untold), "")
        if not good:
            return Comparison((), len(concerned), 0, len(untold), why_not, first)
        with ScratchFolder("port") as copy:
            _copied(before, copy, changes)
            with Job(copy, wanted, progress, jobs=jobs) as after:
                after.built_by_torch = before.built_by_torch  # the copy has not every file that says so
                again = [unit for unit in units_of(after) if unit.path in paths]
                lost = tuple(sorted(_lost(compiled(after, again, wanted, tools, "after", generate=False), good, copy)))
        return Comparison(lost, len(concerned), len(paths), len(untold), why_not, first)


def _for_rocm(unit: Unit, job: Job) -> bool:
    return any(SAYS_ROCM.search(job.sources[path]) for path in closure(unit.path, job.sources))


def _not_here(made: Made) -> str:
    """Return why a unit could not be compiled on this machine; empty where the unit says whether it compiles."""
    result = made.result
    if not isinstance(result, HipFailure):
        return ""
    absent = result.reason is Failure.MISSING_HEADER and not any(is_of_nvidia(name) for name in result.missing_headers)
    return result.message if absent or result.reason in SAYS_NOTHING else ""


def _refused(made: Sequence[Made], untold: Container[str]) -> Iterator[str]:
    """Yield what the compiler says of each unit that does not compile, although it could be compiled here."""
    for one in made:
        if isinstance(one.result, HipFailure) and one.unit.path not in untold:
            yield f"{one.unit.path} ({one.target}): {one.result.message}"


def _good(made: Sequence[Made]) -> set[tuple[str, str]]:
    """Return what compiles for a target as each of the project's builds does."""
    wrong = {(one.unit.path, one.target) for one in made if isinstance(one.result, HipFailure)}
    return {(one.unit.path, one.target) for one in made} - wrong


def _lost(made: Sequence[Made], good: set[tuple[str, str]], copy: Path) -> Iterator[Lost]:
    for one in made:
        failure = one.result if (one.unit.path, one.target) in good else None
        # a compiler that took too long or lacked memory says nothing on a machine that has other work
        if isinstance(failure, HipFailure) and failure.reason not in {Failure.TIMED_OUT, Failure.OUT_OF_MEMORY}:
            yield Lost(one.unit.path, one.target, failure.message.replace(f"{copy}/", ""))


def _copied(job: Job, copy: Path, changes: Sequence[Change]) -> None:
    """Write the sources of a project and what says how they are built, with changes made."""
    wanted = {*job.paths, *job.sources, *build_files(job.tree), *builds_above(job.tree, job.sources), *job.builds.paths}
    made = {change.path: change.after for change in changes}
    with Beneath(copy) as tree:
        for path in sorted(wanted - made.keys()):
            try:
                data = job.sources.get(path) or job.read(path)
            except DataError:
                continue
            if data is not None:
                tree.put(str(PurePosixPath(path)), data)
        for path, after in made.items():
            if after is not None:
                tree.put(path, after)
