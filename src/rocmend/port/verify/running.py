"""Running programs on an NVIDIA GPU: the original, and the ROCm side of the port with HIP's names turned back."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocmend.core.supervise import CommandResult
from rocmend.core.units import count_text
from rocmend.port.cuda.names import hip_names
from rocmend.port.verify import outputs
from rocmend.port.verify.job import Job
from rocmend.port.verify.printed import comparable, difference, failure, untimed
from rocmend.port.verify.programs import MAIN, Built, Command, build, callers, execute, why
from rocmend.port.verify.recording import record
from rocmend.port.verify.records import Evidence, Outcome
from rocmend.port.verify.reverse import REVERSE, write_headers
from rocmend.port.verify.trees import Tree
from rocmend.port.verify.units import Unit

__all__ = ["arguments", "programs_of", "runs"]

_RUN = re.compile(r"^run\s*:[^\n]*\n(?:\t[^\n]*\n)*?\t[^\n]*?\./\S+(?P<arguments>[^\n]*)$", re.MULTILINE)
_ALIAS = re.compile(rb"^[ \t]*namespace (?:cub|thrust) = \w+;[ \t]*$", re.MULTILINE)
_SAME = re.compile(rb"^#define[ \t]+(\w+)[ \t]+(\w+)[ \t]*$", re.MULTILINE)
_SHELL = re.compile(r"[$`|<>&;'\"\\*?]")
"""What only a shell or make could work out."""


class _Ran(NamedTuple):
    built: Built
    said: CommandResult | None = None

    @property
    def ok(self) -> bool:
        """Whether it was built and ran to its end, and said success."""
        return self.said is not None and self.said.ok


def runs(  # noqa: PLR0913, PLR0917  as below
    job: Job, nvcc: str, arch: str, gpu: str, tree: Tree, touched: Sequence[Unit]
) -> list[Evidence]:
    """Build and run each program among the units, from the original and from the ROCm side, and compare the output.

    The original runs twice: what it does not print again says nothing. What it does is kept, so that another machine
    can compare with it.
    """
    programs = programs_of(job, touched)
    changed = {unit.path for unit in touched}
    if not programs:
        return [Evidence("programs", Outcome.NOTE, "no program was run: no translation unit has a main()")]
    headers = job.scratch()
    write_headers(headers, job.sources.values())
    found = []
    for number, unit in enumerate(programs, 1):
        tree.originals()
        given = arguments((job.root / unit.path).parent)
        before = _ran(job, tree, unit, _command(nvcc, arch, tree, ()), given)
        if changed.isdisjoint(before.built.sources):
            continue  # a program near by, of which the port reached nothing
        reason = _unsteady(job, before, unit, given)
        if reason:
            found.append(Evidence(unit.path, Outcome.UNKNOWN, reason))
        elif before.said is not None:
            source = hashlib.sha256((tree.folder / unit.path).read_bytes()).hexdigest()
            outputs.keep(job.tree, outputs.Output(unit.path, source, tuple(given), before.said.stdout, gpu))
            found.append(record(job, tree, unit, _command(nvcc, arch, tree, ()), given, gpu))
            tree.ported()
            _without_aliases(job, tree)
            command = _command(nvcc, arch, tree, (*REVERSE, f"-I{headers}"))
            found.append(_judged(unit, before.said, _ran(job, tree, unit, command, given)))
        job.tell("nvidia", number, len(programs))
    tree.ported()
    if not found:
        return [Evidence("programs", Outcome.NOTE, "no program was run: none is built from a changed file")]
    return found


def programs_of(job: Job, touched: Sequence[Unit]) -> list[Unit]:
    """Return the programs among units, and those near by that may be linked with them."""
    programs = [unit for unit in touched if MAIN.search(job.sources[unit.path])]
    changed = {unit.path for unit in touched}
    return programs + [unit for unit in callers(job, touched) if unit.path not in changed]


def _unsteady(job: Job, before: _Ran, unit: Unit, given: Sequence[str]) -> str:
    """Return why what an original prints says nothing; empty where it does."""
    if before.said is None or before.built.program is None:
        return f"the original does not build here: {why(before.built.said)}"
    if not before.said.ok:
        return f"the original fails here: {why(before.said)}"
    line = failure(before.said.stdout) or failure(before.said.stderr)
    if line is not None:
        return f"the original reports a failure here: {line[:160]!r}"
    if not comparable(before.said.stdout):
        return "the original runs, but prints nothing that can be compared"
    again = execute(job, before.built.program, given, _folder(unit))
    reason = difference(before.said.stdout, again.stdout) if again.ok else why(again)
    return f"the original's output changes from run to run: {reason}" if reason is not None else ""


def _without_aliases(job: Job, tree: Tree) -> None:
    """Take the names of CUDA that mean HIP's out of the port's own headers, and the aliases of namespaces.

    Here CUDA's names mean themselves; and a macro that leads to another one which leads back to it would be left as it
    is: ``hipError_t`` to ``cudaError_t`` to ``hipError_t``.
    """
    names = hip_names()
    for part in job.parts:
        if part.before is None and part.after is not None and part.path.endswith(".h"):
            own = _SAME.sub(lambda found: b"" if names.get(found[1]) == found[2] else found[0], part.after)
            (tree.folder / part.path).write_bytes(_ALIAS.sub(b"", own))


def _command(nvcc: str, arch: str, tree: Tree, options: Sequence[str]) -> Command:
    def command(sources: Sequence[Path], folders: Sequence[Path], libraries: Sequence[str], out: Path) -> list[str]:
        return [
            nvcc, f"-arch={arch}", tree.standard, "-w", "-O2", "--expt-relaxed-constexpr", "--extended-lambda",
            *options, *(f"-I{folder}" for folder in folders), "-o", str(out), *map(str, sources),
            *(f"-l{library}" for library in libraries),
        ]  # fmt: skip

    return command


def _ran(job: Job, tree: Tree, unit: Unit, command: Command, given: Sequence[str]) -> _Ran:
    """Build a program from the tree as it stands and run it."""
    built = build(job, unit, tree.folder, job.scratch() / "program", command)
    return _Ran(built, execute(job, built.program, given, _folder(unit)) if built.program else None)


def _folder(unit: Unit) -> str:
    return str(PurePosixPath(unit.path).parent)


def arguments(folder: Path) -> list[str]:
    """Return the arguments that a program's own Makefile runs it with (``run: …`` and ``./program 100 2``); or none.

    Args:
        folder: Where the program's source is; its Makefile is looked for there.
    """
    for name in ("Makefile", "makefile", "GNUmakefile"):
        with contextlib.suppress(OSError):
            found = _RUN.search((folder / name).read_text(encoding="utf-8", errors="replace"))
            if found is not None and not _SHELL.search(found["arguments"]):
                return found["arguments"].split()
    return []


def _judged(unit: Unit, before: CommandResult, after: _Ran) -> Evidence:
    """Compare two runs; the original's went well."""
    if after.said is None:  # whether it compiles for AMD is what level 3 says
        return Evidence(unit.path, Outcome.UNKNOWN, f"nvcc does not build the ROCm side: {why(after.built.said)}")
    if not after.said.ok:
        return Evidence(unit.path, Outcome.BROKEN, f"the ROCm side fails: {why(after.said)}")
    reason = difference(before.stdout, after.said.stdout)
    if reason is not None:
        return Evidence(unit.path, Outcome.BROKEN, f"the ROCm side's output differs: {reason}")
    lines = sum(bool(line.strip()) for line in untimed(before.stdout))
    detail = f"the output of the original and the ROCm side is the same: {count_text(lines, 'line')}, times ignored"
    return Evidence(unit.path, Outcome.HOLDS, detail)
