"""Programs of a project: built out of the sources that they need, and run where they can do no harm to it."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocmend.core.errors import DataError
from rocmend.core.supervise import CommandResult, Ending, run_command
from rocmend.port.cuda.file import CudaFile
from rocmend.port.verify.execution import Step
from rocmend.port.verify.job import Job
from rocmend.port.verify.units import Unit, folder_of_header, unit_of

__all__ = [
    "BUILD_LIMIT_S",
    "MAIN",
    "RUN_LIMIT_S",
    "Built",
    "Command",
    "build",
    "callers",
    "execute",
    "missing",
    "steps",
    "why",
]

BUILD_LIMIT_S = 600.0
RUN_LIMIT_S = 120.0
_ROUNDS = 40
"""Headers, sources and libraries that are looked for, one after the other, for one program."""
_MOST_CALLERS = 8
"""Programs that are tried for the units that are none themselves."""
_MOST_DATA = 64 << 20
"""Bytes of files beside a program's source that it is given a copy of."""

MAIN = re.compile(rb"\b(?:int|int32_t|auto)\s+main\s*\(")
_TORCH = re.compile(rb"#\s*include\s*[<\"](?:torch|ATen|c10)/")
_SOURCES = (".cu", ".cc", ".cpp", ".cxx", ".c")
_MISSING = re.compile(r"fatal error: (?:([^\s:]+): No such file|'([^']+)' file not found)")
_UNDEFINED = re.compile(r"undefined (?:reference to [`']|symbol: )([^\n']+)")

_LIBRARIES: Mapping[str, str] = {
    "cublasLt": "cublasLt", "cublas": "cublas", "cufft": "cufft", "curand": "curand", "cusparse": "cusparse",
    "cusolver": "cusolver", "cudnn": "cudnn", "nvml": "nvidia-ml", "nvrtc": "nvrtc", "nccl": "nccl",
    "hipblasLt": "hipblaslt", "hipblas": "hipblas", "hipfft": "hipfft", "hiprand": "hiprand",
    "hipsparse": "hipsparse", "hipsolver": "hipsolver", "miopen": "MIOpen", "hiprtc": "hiprtc", "rccl": "rccl",
    "cu": "cuda",
}  # fmt: skip
"""How a library's functions begin, and what it is linked as; the longer beginnings first."""

Command = Callable[[Sequence[Path], Sequence[Path], Sequence[str], Path], list[str]]
"""Returns the command line that builds a program: from its sources, folders of headers, libraries and its path."""


class Built(NamedTuple):
    """A program, or why there is none.

    Args:
        said: What the compiler said.
        program: The program; None where it was not built.
        sources: What it was built from, relative to the project.
    """

    said: CommandResult
    program: Path | None
    sources: tuple[str, ...]


def callers(job: Job, units: Iterable[Unit]) -> list[Unit]:
    """Return the programs that may be built with units that are none themselves: those nearest to each.

    Which of them really are, their building tells (``Built.sources``).
    """
    waiting = [unit for unit in units if not MAIN.search(job.sources[unit.path])]
    mains = [path for path in job.paths if waiting and path.endswith(_SOURCES) and _is_program(job.root / path)]
    found: set[str] = set()
    for unit in waiting:
        for folder in PurePosixPath(unit.path).parents:
            near = [path for path in mains if folder in PurePosixPath(path).parents]
            if near:
                found.update(near)
                break
    return [unit_of(path, job.sources, job.known) for path in sorted(found)][:_MOST_CALLERS]


def build(job: Job, unit: Unit, root: Path, program: Path, command: Command) -> Built:
    """Build a program from the unit with its ``main`` and from what that asks for.

    A header that is not found is looked for in the project; a function that is not defined, in the project's other
    sources, then among the libraries that are known.

    Args:
        job: The run.
        unit: The unit with ``main``.
        root: The project, or a copy of it.
        program: Where the program goes.
        command: The command line for it.
    """
    sources, libraries = [unit.path], list[str]()
    folders = [root / folder for folder in unit.folders]
    for _ in range(_ROUNDS):
        program.unlink(missing_ok=True)
        said = run_command(
            command([root / path for path in sources], folders, libraries, program), time_limit_s=BUILD_LIMIT_S
        )
        if said.ok and program.is_file():
            return Built(said, program, tuple(sources))
        absent = missing(said)
        if absent:
            more = folder_of_header(absent, job.paths)
            if more is None or root / more in folders:
                break
            folders.append(root / more)
            continue
        asked = dict.fromkeys(_undefined(said.stderr))
        fresh = {one for name in asked for one in _defining(job, root, unit, name)} - set(sources)
        linked = {one for name in asked for one in _library(name)} - set(libraries)
        if not fresh and not linked:
            break
        sources += sorted(fresh)
        libraries += [] if fresh else sorted(linked)
    return Built(said, None, tuple(sources))


def steps(level: str, programs: Sequence[Unit], arguments: Callable[[Unit], Sequence[str]]) -> list[Step]:
    """Return the programs that a level builds and runs.

    Args:
        level: The level's name.
        programs: Their units.
        arguments: Returns what one is called with.
    """
    found = []
    for unit in programs:
        given = arguments(unit)
        source = "main() in the source" + ("; arguments from the target 'run' of its Makefile" if given else "")
        command = shlex.join([f"./{PurePosixPath(unit.path).stem}", *given])
        found.append(Step(level, "program", (unit.path,), command, source))
    return found


def execute(
    job: Job, program: Path, given: Sequence[str], beside: str, env: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a program in a new folder, with copies of the data that lie beside its source: what it writes is lost.

    Args:
        job: The run.
        program: The program.
        given: Its arguments.
        beside: The folder of its source, relative to the project.
        env: Variables beyond those that a project's code may see.
    """
    folder = job.scratch()
    left = _MOST_DATA
    for path in job.tree.files("" if beside == "." else beside):
        if path.endswith(_SOURCES):
            continue
        try:
            data = job.tree.document(path, left)
        except (OSError, DataError):  # too large for what is left, or gone
            continue
        left -= len(data)
        (folder / PurePosixPath(path).name).write_bytes(data)
    return job.execute([str(program), *given], folder=folder, time_limit_s=RUN_LIMIT_S, env=env, gpu=True)


def missing(said: CommandResult) -> str:
    """Return the header that a compiler did not find; empty where that was not the matter."""
    found = _MISSING.search(said.stderr)
    return (found[1] or found[2]) if found else ""


def why(said: CommandResult) -> str:
    """Return the first error that a tool printed; or the end of what it printed, or how it ended."""
    absent = _UNDEFINED.search(said.stderr)
    if absent:
        return f"{absent[1]} is not defined in the project or in a known library"[:300]
    if said.ending is Ending.SIGNALLED and said.signal is not None:
        return f"killed by signal {said.signal} ({signal.strsignal(said.signal)})"
    if said.ending is Ending.TIMEOUT:
        return f"timed out after {said.time_ms / 1000:.0f} s"
    if said.ending is not Ending.EXITED:
        return f"{said.ending}: {said.stderr[-200:]}"
    lines = [line.strip() for line in said.stderr.splitlines() if "error" in line.lower()]
    told = lines[0] if lines else (said.stderr or said.stdout).strip()[-200:]
    return (told or f"exit code {said.exit_code}")[:300]


def _is_program(path: Path) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return MAIN.search(data) is not None and _TORCH.search(data) is None


def _undefined(text: str) -> Iterator[str]:
    """Yield the names of the functions that a linker did not find, without namespaces and template arguments."""
    for found in _UNDEFINED.finditer(text):
        head = found[1].partition("(")[0]
        while "<" in head and (inner := re.sub(r"<[^<>]*>", "", head)) != head:
            head = inner
        name = head.split("::")[-1].split()
        if name and re.fullmatch(r"\w+", name[-1]):
            yield name[-1]


def _defining(job: Job, root: Path, unit: Unit, name: str) -> list[str]:
    """Return the source that defines a function: the nearest to the unit, where several do; none where none does."""
    wanted, here = name.encode(), PurePosixPath(unit.path).parent
    found = []
    for path in job.paths:
        if not path.endswith(_SOURCES) or path == unit.path:
            continue
        try:
            data = (root / path).read_bytes()
        except OSError:
            continue
        if wanted not in data or MAIN.search(data) or _TORCH.search(data):
            continue
        if any(one.name.text == wanted for one in CudaFile(path, data).functions):
            found.append(path)
    return sorted(found, key=lambda path: (-_common(here, PurePosixPath(path).parent), len(path), path))[:1]


def _common(one: PurePosixPath, other: PurePosixPath) -> int:
    return sum(a == b for a, b in zip(one.parts, other.parts, strict=False)) - len(other.parts)


def _library(name: str) -> list[str]:
    for begin, library in _LIBRARIES.items():
        if name.startswith(begin) and name[len(begin) : len(begin) + 1].isupper():
            return [library]
        if name.startswith(f"{begin}_"):
            return [library]
    return []
