"""Level 5: for NVIDIA the port is the same machine code, and where there is a GPU, both sides run the same.

The first half needs nvcc alone: each translation unit that the port reached is compiled from the original and from the
port, under the same path, and the cubins are compared byte for byte. The second half needs a GPU: programs are built
from the original and from the port's ROCm side, the latter through a header that gives HIP's names CUDA's meaning, and
what they print is compared. It shows what the ROCm side computes on wavefronts of 32 lanes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.core.supervise import CommandResult, run_command
from rocmend.core.units import count_text
from rocmend.port.verify import programs
from rocmend.port.verify.execution import Step
from rocmend.port.verify.job import Job
from rocmend.port.verify.programs import missing, why
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.running import arguments, programs_of, runs
from rocmend.port.verify.trees import Tree
from rocmend.port.verify.units import Unit, folder_of_header, reached, refused, torch_folders, units_of

__all__ = ["Nvcc", "find_nvcc", "run", "steps"]

TIME_LIMIT_S = 600.0
WANTED = "sm_90"
_NEITHER = "could not be compiled, neither before nor after the port: "
_TORCH_HEADER = re.compile(r"(?:torch|ATen|c10)/")
_LINES = re.compile(rb"\bassert\s*\(|__LINE__|\bTORCH_(?:CHECK|INTERNAL_ASSERT)|\bCUDA_KERNEL_ASSERT")


class Nvcc(NamedTuple):
    """NVIDIA's compiler.

    Args:
        program: Its path.
        version: Its release.
        arch: What is compiled for.
        gpu: The GPU that programs can run on; empty where there is none.
        no_gpu: Why programs cannot be run; empty where they can.
    """

    program: str
    version: str
    arch: str
    gpu: str
    no_gpu: str = ""


def find_nvcc() -> Nvcc | None:
    """Return NVIDIA's compiler with what it compiles for: the GPU at hand, else sm_90; None where there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    program = shutil.which("nvcc") or shutil.which("nvcc", path=f"{home}/bin")
    if program is None:
        return None
    version = re.search(r"release ([\d.]+)", run_command([program, "--version"], time_limit_s=30).stdout)
    known = run_command([program, "--list-gpu-code"], time_limit_s=30).stdout.split()
    if version is None or not known:
        return None
    asked = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    seen = run_command(asked, time_limit_s=30)
    name, _, capability = seen.stdout.partition("\n")[0].rpartition(",") if seen.ok else ("", "", "")
    own = f"sm_{capability.strip().replace('.', '')}"
    arch = own if own in known else WANTED if WANTED in known else known[-1]
    if not capability.strip():
        return Nvcc(program, version[1], arch, "", "there is no NVIDIA GPU here")
    if own not in known:
        return Nvcc(program, version[1], arch, "", f"nvcc {version[1]} does not compile for the {name.strip()} ({own})")
    return Nvcc(program, version[1], arch, name.strip())


def absent(job: Job) -> str:
    """Return why the level cannot run; empty where it can."""
    if not job.generations:
        return "no port was applied: there is no original to compare with"
    if find_nvcc() is None:
        return "nvcc not found: it is neither in PATH nor under CUDA_HOME"
    if not _touched(job):
        beside = f": the ROCm side is separate, in {job.beside}" if job.beside else " or header"
        return f"the port changed no CUDA C++ translation unit{beside}"
    return ""


def run(job: Job) -> Level:
    """Compare cubins, then runs."""
    nvcc = find_nvcc()
    if (why := absent(job)) or nvcc is None:
        return not_run(why)
    touched = _touched(job)
    tree = Tree(job)
    evidence = _cubins(job, nvcc, tree, touched)
    told = _compared(evidence, nvcc)
    wanted = steps(job) if job.execution is None else []
    skipped = job.not_asked("nvidia", wanted) if wanted else None
    reason = nvcc.no_gpu or (skipped.why if skipped else "")
    if job.execution is not None and job.execution.container:
        reason = reason or "programs for NVIDIA GPUs are not run in a container"
    if reason:
        evidence.append(Evidence("programs", Outcome.UNKNOWN, f"no program was run: {reason}"))
        made = concluded(evidence, f"{told}; no program was run: {reason}.")
        return msgspec.structs.replace(made, command=skipped.command, steps=skipped.steps) if skipped else made
    ran = runs(job, nvcc.program, nvcc.arch, nvcc.gpu, tree, touched)
    evidence += ran
    agree = sum(one.outcome is Outcome.HOLDS for one in ran)
    compared = [one for one in ran if one.outcome is not Outcome.NOTE]
    if not compared:
        return concluded(evidence, f"{told}; no program was run: no translation unit has a main().")
    return concluded(
        evidence, f"{told}; {agree} of {count_text(len(compared), 'program')} gave the same output on {nvcc.gpu}."
    )


def _compared(evidence: Sequence[Evidence], nvcc: Nvcc) -> str:
    """Return what the comparison of cubins came to: what no side of compiles says nothing of the port."""
    neither = [one for one in evidence if one.outcome is Outcome.UNKNOWN]
    same = sum(one.outcome is Outcome.HOLDS for one in evidence)
    pairs = len(evidence) - len(neither)
    made = f"{same} of {pairs} cubins for {nvcc.arch} are identical to the original's (nvcc {nvcc.version})"
    reasons = ", ".join(dict.fromkeys(one.detail.removeprefix(_NEITHER) for one in neither[:2]))
    failed = f"{count_text(len(neither), 'file')} {_NEITHER}{reasons}"
    return "; ".join([made] * bool(pairs) + [failed] * bool(neither))


def steps(job: Job) -> list[Step]:
    """Return the programs that are built and run here; none where there is no port, or nothing to run them on."""
    if not job.generations or (nvcc := find_nvcc()) is None or not nvcc.gpu:
        return []
    return programs.steps(
        "nvidia", programs_of(job, _touched(job)), lambda unit: arguments((job.root / unit.path).parent)
    )


def _touched(job: Job) -> list[Unit]:
    changed = [part.path for part in job.parts if part.before is not None]
    return [unit for unit in reached(units_of(job), job.sources, changed) if not refused(job, unit)]


# -- cubins ------------------------------------------------------------------------------------------------------------


class _Built(NamedTuple):
    cubin: bytes
    said: CommandResult


def _cubins(job: Job, nvcc: Nvcc, tree: Tree, touched: Sequence[Unit]) -> list[Evidence]:
    """Compile every unit from the original, then from the port, in the same place: a path is part of the code."""
    torch = torch_folders() if any(unit.torch for unit in touched) else []
    total = 2 * len(touched)

    def all_of(done: int, *options: str, only: Sequence[Unit] = touched) -> dict[str, _Built]:
        def build(unit: Unit) -> Callable[[], _Built]:
            return lambda: _cubin(nvcc, tree, unit, torch if unit.torch else [], options)

        made = {}
        with ThreadPoolExecutor(job.jobs) as pool:
            for number, (unit, one) in enumerate(zip(only, pool.map(lambda f: f(), map(build, only)), strict=True), 1):
                made[unit.path] = one
                job.tell("nvidia", min(total, done + number), total)
        return made

    tree.originals()
    before = all_of(0)
    tree.ported()
    after = all_of(len(touched))
    differ = [
        unit
        for unit in touched
        if before[unit.path].cubin and after[unit.path].cubin and before[unit.path].cubin != after[unit.path].cubin
        and tree.holds(unit, _LINES)
    ]  # fmt: skip
    lines: dict[str, bool] = {}
    if differ:  # assertions hold the number of their line, which a gate before them moves
        ported = all_of(total, "-DNDEBUG", "-D__LINE__=0", only=differ)
        tree.originals()
        original = all_of(total, "-DNDEBUG", "-D__LINE__=0", only=differ)
        tree.ported()
        lines = {path: bool(one.cubin) and one.cubin == original[path].cubin for path, one in ported.items()}
    return [_judged(unit, before[unit.path], after[unit.path], lines.get(unit.path, False), tree) for unit in touched]


def _cubin(nvcc: Nvcc, tree: Tree, unit: Unit, torch: Sequence[Path], options: Sequence[str]) -> _Built:
    """Compile a unit of the tree as it stands now."""
    folders = [tree.folder / folder for folder in unit.folders] + list(torch)
    out = tree.out(unit)
    while True:
        out.unlink(missing_ok=True)
        said = run_command(
            [
                nvcc.program, "-cubin", f"-arch={nvcc.arch}", tree.standard, "-w", "--expt-relaxed-constexpr",
                "--extended-lambda", *(f"-D{name}={value}" for name, value in unit.nvidia_defines.items()),
                *(f"-I{folder}" for folder in folders), *options, "-o", str(out), str(tree.folder / unit.path),
            ],
            time_limit_s=TIME_LIMIT_S,
        )  # fmt: skip
        absent = missing(said)
        more = folder_of_header(absent, tree.paths) if absent else None
        if more is None or tree.folder / more in folders:  # each turn adds a folder: it comes to an end
            return _Built(out.read_bytes() if said.ok and out.is_file() else b"", said)
        folders.append(tree.folder / more)


def _judged(unit: Unit, before: _Built, after: _Built, but_for_lines: bool, tree: Tree) -> Evidence:
    if not before.cubin and not after.cubin:
        return Evidence(unit.path, Outcome.UNKNOWN, f"{_NEITHER}{_reason(before.said, tree)}")
    if not after.cubin:
        return Evidence(unit.path, Outcome.BROKEN, f"nvcc does not compile the port: {_reason(after.said, tree)}")
    if not before.cubin:
        detail = f"nvcc compiles the port, but not the original: {_reason(before.said, tree)}"
        return Evidence(unit.path, Outcome.NOTE, detail)
    if before.cubin == after.cubin:
        return Evidence(unit.path, Outcome.HOLDS, f"the cubins are identical, {len(after.cubin)} bytes")
    if but_for_lines:
        return Evidence(unit.path, Outcome.HOLDS, "the cubins are identical except for line numbers in assertions")
    return Evidence(unit.path, Outcome.BROKEN, "the cubins differ: the port changes the code for NVIDIA")


def _reason(said: CommandResult, tree: Tree) -> str:
    """Return why nvcc failed, with paths as the project has them, and what to install for a missing header."""
    header = missing(said)
    if not header:
        return why(said).replace(f"{tree.folder}/", "")
    return f"{header} is missing{' (pip install torch)' if _TORCH_HEADER.match(header) else ''}"
