"""Running programs on an NVIDIA GPU: the original, and the ROCm side of the port with HIP's names turned back."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from rocmend.core.supervise import CommandResult, run_command
from rocmend.port.verify import outputs
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Outcome
from rocmend.port.verify.reverse import write_headers
from rocmend.port.verify.trees import Tree
from rocmend.port.verify.units import Unit, closure, folder_of_header

__all__ = ["BUILD_LIMIT_S", "MAIN", "RUN_LIMIT_S", "arguments", "difference", "missing", "runs", "why"]

BUILD_LIMIT_S = 600.0
RUN_LIMIT_S = 120.0
TOLERANCE = 1e-3
"""Relative: what a program prints has been rounded, and sums of floating-point numbers may come in another order."""

MAIN = re.compile(rb"\bint\s+main\s*\(")
_MISSING = re.compile(r"fatal error: (?:([^\s:]+): No such file|'([^']+)' file not found)")
_TIMED = re.compile(
    r"\b(?:time|seconds?|[mun]?secs?|[mun]s|elapsed|[GMT]i?B/s|[GT]?FLOPS?|bandwidth|throughput|fps)\b", re.IGNORECASE
)
_RUN = re.compile(r"^run\s*:[^\n]*\n(?:\t[^\n]*\n)*?\t[^\n]*?\./\S+(?P<arguments>[^\n]*)$", re.MULTILINE)
_ALIAS = re.compile(rb"^[ \t]*namespace (?:cub|thrust) = \w+;[ \t]*$", re.MULTILINE)
_SHELL = re.compile(r"[$`|<>&;'\"\\*?]")
"""What only a shell or make could work out."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def runs(  # noqa: PLR0913, PLR0917  as below
    job: Job, nvcc: str, arch: str, gpu: str, tree: Tree, touched: Sequence[Unit]
) -> list[Evidence]:
    """Build and run each program among the units, from the original and from the ROCm side, and compare the output.

    What the originals print is kept, so that another machine can compare with it.
    """
    programs = [unit for unit in touched if MAIN.search(job.sources[unit.path])]
    if not programs:
        return [Evidence("programs", Outcome.NOTE, "no translation unit is a program of its own: nothing was run")]
    headers = job.scratch()
    write_headers(headers, (job.sources[path] for unit in programs for path in closure(unit.path, job.sources)))
    found = []
    for number, unit in enumerate(programs, 1):
        tree.originals()
        given = arguments((job.root / unit.path).parent)
        before = _ran(nvcc, arch, tree, unit, (), given)
        if before.ok:
            source = hashlib.sha256((tree.folder / unit.path).read_bytes()).hexdigest()
            outputs.keep(job.root, outputs.Output(unit.path, source, tuple(given), before.stdout, gpu))
        tree.ported()
        _without_aliases(job, tree)
        after = _ran(nvcc, arch, tree, unit, ("-DUSE_ROCM", f"-I{headers}"), given)
        found.append(_judged(unit, before, after))
        job.tell("nvidia", number, len(programs))
    return found


def _without_aliases(job: Job, tree: Tree) -> None:
    """Take the aliases of CUB's and Thrust's namespaces out of the port's own headers: for NVIDIA those are there."""
    for part in job.parts:
        if part.before is None and part.after is not None and part.path.endswith(".h"):
            (tree.folder / part.path).write_bytes(_ALIAS.sub(b"", part.after))


def _ran(  # noqa: PLR0913, PLR0917  a build has as many parts as it has
    nvcc: str, arch: str, tree: Tree, unit: Unit, options: Sequence[str], given: Sequence[str]
) -> CommandResult:
    """Build a program from the tree as it stands and run it; where it does not build, return what nvcc said."""
    program = tree.out(unit)
    folders = [tree.folder / folder for folder in unit.folders]
    while True:
        program.unlink(missing_ok=True)
        built = run_command(
            [
                nvcc, f"-arch={arch}", tree.standard, "-w", "-O2", "--expt-relaxed-constexpr", "--extended-lambda",
                *options, *(f"-I{folder}" for folder in folders), "-o", str(program), str(tree.folder / unit.path),
            ],
            time_limit_s=BUILD_LIMIT_S,
        )  # fmt: skip
        absent = missing(built)
        more = folder_of_header(absent, tree.paths) if absent else None
        if more is None or tree.folder / more in folders:
            break
        folders.append(tree.folder / more)
    if not built.ok or not program.is_file():
        return built
    return run_command([str(program), *given], time_limit_s=RUN_LIMIT_S)


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


def _judged(unit: Unit, before: CommandResult, after: CommandResult) -> Evidence:
    if not before.ok:
        return Evidence(unit.path, Outcome.UNKNOWN, f"the original does not build or run here: {why(before)}")
    if not after.ok and after.argv[0] != before.argv[0]:  # whether it compiles for AMD is what level 3 says
        return Evidence(unit.path, Outcome.UNKNOWN, f"nvcc does not build the ROCm side: {why(after)}")
    if not after.ok:
        return Evidence(unit.path, Outcome.BROKEN, f"the ROCm side does not run to its end: {why(after)}")
    reason = difference(before.stdout, after.stdout)
    if reason is not None:
        return Evidence(unit.path, Outcome.BROKEN, f"the ROCm side prints something else: {reason}")
    return Evidence(unit.path, Outcome.HOLDS, "the original and the ROCm side print the same")


def missing(said: CommandResult) -> str:
    """Return the header that a compiler did not find; empty where that was not the matter."""
    found = _MISSING.search(said.stderr)
    return (found[1] or found[2]) if found else ""


def why(said: CommandResult) -> str:
    """Return the first error that a tool printed; or the end of what it printed, or how it ended."""
    lines = [line.strip() for line in said.stderr.splitlines() if "error" in line.lower()]
    return (lines[0] if lines else (said.stderr or said.stdout).strip()[-200:] or str(said.ending))[:300]


def difference(before: str, after: str) -> str | None:
    """Return how two outputs of a program differ; None where they agree but for times, rates and rounding."""
    one, other = ([line for line in text.splitlines() if not _TIMED.search(line)] for text in (before, after))
    if len(one) != len(other):
        return f"{len(one)} lines, {len(other)} from the ROCm side (lines with times left out)"
    for number, (line, ported) in enumerate(zip(one, other, strict=True), 1):
        if line != ported and not _alike(line, ported):
            return f"line {number}: {line[:80]!r} is {ported[:80]!r}"
    return None


def _alike(line: str, other: str) -> bool:
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return False
    pairs = zip(_NUMBER.findall(line), _NUMBER.findall(other), strict=True)
    return all(
        one == two or abs(float(one) - float(two)) <= TOLERANCE * max(abs(float(one)), abs(float(two)))
        for one, two in pairs
    )
