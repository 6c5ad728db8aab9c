"""Level 3: the ROCm side compiles for each target, and its code objects are what they should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.codeobject.hip import Failure, HipFailure, HipObject, Syntax, check_syntax, compile_hip
from rocmend.codeobject.hip import Level as DiagnosticLevel
from rocmend.codeobject.hip.headers import DECLARED
from rocmend.codeobject.hip.toolchain import Toolchain, find_toolchain
from rocmend.core.gfx import lookup
from rocmend.port.cuda.includes import closure
from rocmend.port.definitions.asked import undecided
from rocmend.port.verify import units as found_units
from rocmend.port.verify.execution import memory_limit
from rocmend.port.verify.job import Job
from rocmend.port.verify.made import Made, Way, told
from rocmend.port.verify.records import Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.translated import TORCH, translated
from rocmend.port.verify.units import (
    Unit,
    folder_of_header,
    refused,
    relocatable,
    standard,
    targets_of,
    torch_folders,
)

__all__ = ["compiled", "run"]

_ROUNDS = 16
"""Folders of headers that are looked for in the project, one after the other, for one unit."""


def run(job: Job) -> Level:
    """Compile every translation unit for every target, and look at the code objects."""
    units = found_units.units_of(job)
    if not units:
        return not_run("the project has no CUDA C++ translation unit")
    tools = find_toolchain()
    targets = targets_of(job)
    made = compiled(job, units, targets, tools, "compile")
    absent, evidence = told(made, job.sources)
    broken = {one.subject for one in evidence if one.outcome is Outcome.BROKEN}
    unknown = {one.subject for one in evidence if one.outcome is Outcome.UNKNOWN} - broken
    unknown = (unknown - {name for names in absent.values() for name in names}) | absent.keys()
    sizes = ", ".join(f"{name} (wave{lookup(name).wavefront_default})" for name in targets)
    good = len(units) - len(broken) - len(unknown)
    rest = [f"{len(broken)} do not" if broken else "", f"{len(unknown)} could not be checked" if unknown else ""]
    counts = "".join(f", {each}" for each in rest if each)
    summary = f"{good} of {len(units)} translation units compile for {sizes}, with {tools.name}{counts}."
    declared = sorted({name for one in made for name in one.result.stand_ins if name.startswith(DECLARED)})
    if declared:
        summary += f" Calls of ROCm's libraries on the host are not proven: {', '.join(declared)} are rocmend's own."
    return concluded(evidence, summary)


def compiled(  # noqa: PLR0913  a run is told what to compile, for what and how
    job: Job, units: Sequence[Unit], targets: Sequence[str], tools: Toolchain, level: str, *, generate: bool = True
) -> list[Made]:
    """Compile units for targets, several side by side, and read each unit's host side once.

    Args:
        job: The run.
        units: The units.
        targets: The gfx targets.
        tools: The compiler.
        level: Who is told how far it is.
        generate: Whether code is generated; without, both sides of a unit are read for each target.
    """
    torch = torch_folders() if any(unit.torch for unit in units) else []
    root = translated(job, torch) if any(unit.torch for unit in units) else job.root
    torch = [root / TORCH, *torch]
    work = _Work(job, tools, root, torch, standard(job.tree), generate, relocatable(job.tree))
    tasks: list[Callable[[], Made]] = []
    for unit in units:
        tasks += [_task(work, way) for way in _ways(job, unit, ("", *targets) if generate else targets)]
    made = []
    with ThreadPoolExecutor(job.jobs) as pool:  # each waits for a process of its own
        for done, one in enumerate(pool.map(lambda task: task(), tasks)):
            made.append(one)
            job.tell(level, done + 1, len(tasks))
    return made


class _Work(NamedTuple):
    job: Job
    tools: Toolchain
    translated: Path
    torch: list[Path]
    standard: str
    generate: bool
    relocatable: bool


def _ways(job: Job, unit: Unit, targets: Sequence[str]) -> Iterator[Way]:
    """Yield how a unit is compiled: as each of the project's builds does, for each target."""
    builds = job.builds.of_unit(unit.path)
    sources = [job.known[path] for path in closure(unit.path, job.known)]
    for macros in builds:
        unsure = undecided(macros, sources)
        yield from (Way(unit, target, macros, unsure, len(builds) > 1) for target in targets)


def _task(work: _Work, way: Way) -> Callable[[], Made]:
    def made() -> Made:
        result = _compile(work, way.unit, way.target, way.macros.over(way.unit.defines))
        if not isinstance(result, HipFailure):
            return Made(way, result)
        return Made(way, _as_named(work, result), _as_named_file(work, _elsewhere(work, result)))

    return made


def _as_named_file(work: _Work, file: str) -> str:
    """Return a file's name as the project has it: a copy's place in the user's cache says nothing."""
    return file.replace(f"{work.translated}/", "") if work.translated != work.job.root else file


def _as_named(work: _Work, failure: HipFailure) -> HipFailure:
    """Return a failure in which files have the names that the project gives them."""
    diagnostics = tuple(
        msgspec.structs.replace(one, file=_as_named_file(work, one.file), message=_as_named_file(work, one.message))
        for one in failure.diagnostics
    )
    return msgspec.structs.replace(failure, message=_as_named_file(work, failure.message), diagnostics=diagnostics)


def _elsewhere(work: _Work, failure: HipFailure) -> str:
    """Return the first file with an error if none is in the project's sources, nor led to from them.

    A header is compiled for what a source gives it: a note of the compiler then names the source.
    """
    roots = (work.job.root.resolve(), work.translated)
    others = (work.translated / TORCH,)

    def own(file: str) -> bool:
        path = Path(file) if Path(file).is_absolute() else work.job.root / file
        return any(path.is_relative_to(root) for root in roots) and not any(path.is_relative_to(one) for one in others)

    seen = ""
    inside = False
    for one in failure.diagnostics:
        inside = one.level is not DiagnosticLevel.WARNING and (inside or one.level is DiagnosticLevel.ERROR)
        if inside and (not one.file or own(one.file)):
            return ""
        seen = seen or (one.file if one.level is DiagnosticLevel.ERROR else "")
    return seen


def _compile(work: _Work, unit: Unit, target: str, defines: Mapping[str, str]) -> HipObject | HipFailure | Syntax:
    """Compile a unit with macros; a header that the project has somewhere is looked for there."""
    job = work.job
    reason = refused(job, unit)
    if reason:
        message = f"Not compiled: it reads a file outside the project, which compiler messages could show: {reason}."
        return HipFailure(target, 0, Failure.UNREADABLE, message)
    root = work.translated if unit.torch else job.root
    folders = [root / folder for folder in unit.folders]
    if unit.torch:  # what does not name CUDA is not translated, and stands where it stood
        folders += [*work.torch, (job.root / unit.path).parent, *(job.root / folder for folder in unit.folders)]
    source = root / unit.path
    for _ in range(_ROUNDS):
        if target and work.generate:
            result: HipObject | HipFailure | Syntax = compile_hip(
                source,
                target,
                defines=defines,
                include_dirs=folders,
                options=(work.standard,),
                relocatable=work.relocatable,
                within=(job.root.resolve(), work.translated),
                memory_bytes=_memory_bytes(job),
                cache=job.cache,
                toolchain=work.tools,
            )
        else:
            result = check_syntax(
                source,
                target or _ANY,
                defines=defines,
                include_dirs=folders,
                options=(work.standard, "-Wno-unused-value"),
                within=(job.root.resolve(), work.translated),
                memory_bytes=_memory_bytes(job),
                host_only=not target,
                toolchain=work.tools,
            )
        if not isinstance(result, HipFailure) or result.reason is not Failure.MISSING_HEADER:
            return result
        more = [
            one for one in (folder_of_header(each, job.paths) for each in result.missing_headers) if one is not None
        ]
        wanted = [place / one for one in more for place in dict.fromkeys((root, job.root))]
        fresh = [one for one in wanted if one not in folders]
        if not fresh:
            return result
        folders += fresh
    return result


def _memory_bytes(job: Job) -> int:
    """Return the memory that one of the compilers may use that run at once."""
    return max(_LEAST_MEMORY_BYTES, memory_limit() // job.jobs)


_LEAST_MEMORY_BYTES = 2 << 30
"""A unit that includes PyTorch's headers needs about as much."""

_ANY = "gfx942"
"""The host's side is the same for every target, but clang wants one to be named."""
