"""Level 3: the ROCm side compiles for each target, and its code objects are what they should be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.codeobject.hip import Failure, HipFailure, HipObject, Syntax, check_syntax, compile_hip, findings
from rocmend.codeobject.hip import Level as DiagnosticLevel
from rocmend.codeobject.hip.headers import DECLARED, STAND_INS, how_to_get, is_of_nvidia
from rocmend.codeobject.hip.toolchain import Toolchain, find_toolchain
from rocmend.core.gfx import lookup
from rocmend.core.records import Severity
from rocmend.port.verify import units as found_units
from rocmend.port.verify.definitions import definitions
from rocmend.port.verify.execution import memory_limit
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.translated import TORCH, translated
from rocmend.port.verify.units import Unit, folder_of_header, refused, relocatable, standard, targets_of, torch_folders

__all__ = ["SAYS_NOTHING", "Made", "compiled", "run"]

_LACKING = re.compile(
    r"(?:undeclared identifier|no member named|no matching|unknown type name|no type named|no template)\b[^']*"
    r"'[^']*(?:half|bfloat|bf16|__h[a-z]+\d?\b|\bh2?[a-z]+\b|Complex|group|tile|partition|coalesced|HIP_"
    r"|hip(?:blas|sparse|solver|cub|rand|_fp8)|HIP(?:BLAS|SPARSE|SOLVER|CUB|RAND)|fp8)"
    r"|no (?:member|type|template)\b.* in (?:namespace )?'(?:hipcub|thrust)\b"
)
"""Errors that a header gives which lacks a name, for names of the kinds that rocmend's own headers have."""

SAYS_NOTHING = {Failure.TIMED_OUT, Failure.UNREADABLE, Failure.OUT_OF_MEMORY}
"""Reasons that are not the source's."""

_SHOWN = 3
_ROUNDS = 16
"""Folders of headers that are looked for in the project, one after the other, for one unit."""


class Made(NamedTuple):
    """What one unit came to for one target.

    Args:
        unit: The unit.
        target: The gfx target; empty for the host's side.
        result: The code object, or why there is none.
        elsewhere: The first file that errors are in, where all of them are in headers of others; empty otherwise.
    """

    unit: Unit
    target: str
    result: HipObject | HipFailure | Syntax
    elsewhere: str = ""


def run(job: Job) -> Level:
    """Compile every translation unit for every target, and look at the code objects."""
    units = found_units.units_of(job)
    if not units:
        return not_run("the project has no CUDA C++ translation unit")
    tools = find_toolchain()
    targets = targets_of(job)
    made = compiled(job, units, targets, tools, "compile")
    absent = _absent(made)
    evidence = [one for each in made if each.unit.path not in absent for one in _evidence(each)]
    evidence += _missing(absent)
    evidence += [_stand_ins(made)] if any(_used(one) for one in made) else []
    broken = {one.subject for one in evidence if one.outcome is Outcome.BROKEN}
    unknown = {one.subject for one in evidence if one.outcome is Outcome.UNKNOWN} - broken
    unknown = (unknown - {name for names in absent.values() for name in names}) | absent.keys()
    sizes = ", ".join(f"{name} (wave{lookup(name).wavefront_default})" for name in targets)
    good = len(units) - len(broken) - len(unknown)
    rest = [f"{len(broken)} do not" if broken else "", f"{len(unknown)} could not be checked" if unknown else ""]
    told = "".join(f", {each}" for each in rest if each)
    summary = f"{good} of {len(units)} translation units compile for {sizes}, with {tools.name}{told}."
    declared = sorted({name for one in made for name in _used(one) if name.startswith(DECLARED)})
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
        tasks += [_task(work, unit, target) for target in (("", *targets) if generate else targets)]
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


def _task(work: _Work, unit: Unit, target: str) -> Callable[[], Made]:
    def made() -> Made:
        result = _compile(work, unit, target)
        if not isinstance(result, HipFailure):
            return Made(unit, target, result)
        return Made(unit, target, _as_named(work, result), _as_named_file(work, _elsewhere(work, result)))

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


def _compile(work: _Work, unit: Unit, target: str) -> HipObject | HipFailure | Syntax:
    """Compile a unit as each of the project's builds does; return the first failure, or else the first result."""
    ways = definitions(work.job.tree, unit.path)
    made = [_compile_with(work, unit, target, ways[0].over(unit.defines))]
    for way in ways[1:]:
        if isinstance(made[-1], HipFailure):
            break
        made.append(_compile_with(work, unit, target, way.over(unit.defines)))
    last = made[-1]
    if isinstance(last, HipFailure) and len(ways) > 1:
        return msgspec.structs.replace(last, message=f"{last.message} (Built as in {ways[len(made) - 1].build}.)")
    return made[0]


def _compile_with(work: _Work, unit: Unit, target: str, defines: Mapping[str, str]) -> HipObject | HipFailure | Syntax:
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


# -- evidence ----------------------------------------------------------------------------------------------------------


def _absent(made: Sequence[Made]) -> dict[str, tuple[str, ...]]:
    """Return the units of which nothing can be said because headers are not installed, each with those headers."""
    lacking: dict[str, set[str]] = {}
    decided: set[str] = set()
    for one in made:
        failure = one.result if isinstance(one.result, HipFailure) else None
        headers = failure.missing_headers if failure and failure.reason is Failure.MISSING_HEADER else ()
        if headers and (one.elsewhere or not any(is_of_nvidia(header) for header in headers)):
            lacking.setdefault(one.unit.path, set()).update(headers)
        elif failure is not None:
            decided.add(one.unit.path)
    return {path: tuple(sorted(names)) for path, names in lacking.items() if path not in decided}


def _missing(absent: Mapping[str, tuple[str, ...]]) -> list[Evidence]:
    """Say once of each header that is not installed how to get it, and which units wait for it."""
    units: dict[str, list[str]] = {}
    for path, headers in absent.items():
        for header in headers:
            units.setdefault(header, []).append(path)
    found = []
    for header, paths in sorted(units.items()):
        shown = ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
        detail = f"{how_to_get(header)} It is needed by {shown}."
        found.append(Evidence(header, Outcome.UNKNOWN, detail, data={"units": paths}))
    return found


def _evidence(made: Made) -> list[Evidence]:
    path, target = made.unit.path, made.target
    size = lookup(target).wavefront_default if target else 0
    result = made.result
    if isinstance(result, HipFailure):
        return [_failure(made, result, size)]
    if isinstance(result, Syntax):
        return [Evidence(path, Outcome.HOLDS, "the host code compiles", time_ms=result.time_ms)]
    figures = {
        "kernels": [
            {
                "name": kernel.name,
                "wavefront_size": kernel.wavefront_size,
                "vgprs": kernel.vgprs,
                "sgprs": kernel.sgprs,
                "lds_bytes": kernel.lds_bytes,
                "scratch_bytes": kernel.scratch_bytes,
                "vgpr_spills": kernel.vgpr_spills,
            }
            for kernel in result.kernels
        ],
        "warnings": [str(one) for one in result.diagnostics],
        "from_cache": result.from_cache,
    }
    count = len(result.kernels)
    kernels = f"{count} kernel{'s' if count != 1 else ''}"
    found = [Evidence(path, Outcome.HOLDS, kernels, 0, target, size, result.time_ms, figures)]
    for one in findings(result):
        outcome = Outcome.BROKEN if one.severity is Severity.ERROR else Outcome.NOTE
        found.append(Evidence(path, outcome, f"{one.check}: {one.kernel} {one.detail}".strip(), 0, target, size))
    return found


def _failure(made: Made, failure: HipFailure, size: int) -> Evidence:
    """Say what stands in the way; what is not here says nothing about the source."""
    alien = any(is_of_nvidia(header) for header in failure.missing_headers)
    absent = failure.reason is Failure.MISSING_HEADER and not alien
    ours = bool(failure.stand_ins and failure.errors) and _of_stand_ins(failure)
    # what the back end cannot translate is the source's: an instruction that the target lacks
    crashed = failure.reason is Failure.CRASHED and not any("in backend" in one.message for one in failure.errors)
    untold = crashed or failure.reason in SAYS_NOTHING
    undecided = absent or ours or bool(made.elsewhere) or untold
    outcome = Outcome.UNKNOWN if undecided else Outcome.BROKEN
    line = next((one.line for one in failure.errors if one.file.endswith(made.unit.path)), 0)
    side = "" if made.target else "host code: "
    lacking = " ROCm's own header may define it; rocmend's substitute header was used here." if ours else ""
    if made.elsewhere and not ours:
        lacking = f" All errors are in headers that are not the project's ({made.elsewhere})."
    data = {"reason": str(failure.reason), "errors": [str(one) for one in failure.errors][:20]}
    return Evidence(
        made.unit.path, outcome, side + failure.message + lacking, line, made.target, size, failure.time_ms, data
    )


def _of_stand_ins(failure: HipFailure) -> bool:
    """Tell whether each error may be one of rocmend's own headers: a name that they lack, or a library's call."""
    explained: list[bool] = []
    for one in failure.diagnostics:
        if one.level is DiagnosticLevel.ERROR:
            explained.append(_LACKING.search(one.message) is not None)
        elif one.level is DiagnosticLevel.NOTE and explained and Path(one.file).is_relative_to(STAND_INS):
            # a candidate of a library's call; those of HIP's own types are as HIP has them
            explained[-1] |= Path(one.file).relative_to(STAND_INS).parts[0] != "hip"
    return all(explained)


def _used(made: Made) -> tuple[str, ...]:
    return made.result.stand_ins


def _stand_ins(made: Sequence[Made]) -> Evidence:
    names = sorted({name for one in made for name in _used(one)})
    return Evidence(
        ", ".join(names),
        Outcome.NOTE,
        "ROCm's own header is not installed, so rocmend's substitute was used: kernels compile to real code, but the "
        "two headers may not declare exactly the same names, and a kernel's registers and LDS may differ",
    )
