"""Level 7: the port's programs, built with the ROCm that is here and run on its GPU.

What they print is compared with what the originals printed on an NVIDIA GPU, where level 5 ran and kept it. The result
is kept as evidence in ``.rocmend/port/proofs``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.codeobject.hip.headers import how_to_get
from rocmend.core.gfx import GfxTarget, from_kfd_version
from rocmend.port.verify import outputs
from rocmend.port.verify.execution import Step
from rocmend.port.verify.job import Job
from rocmend.port.verify.printed import difference
from rocmend.port.verify.programs import MAIN, Command, build, callers, execute, missing, why
from rocmend.port.verify.programs import steps as built_programs
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.running import arguments
from rocmend.port.verify.units import Unit, standard, units_of

__all__ = ["run", "steps"]

NODE = Path("/dev/kfd")
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
PROOFS = ".rocmend/port/proofs"


def absent(job: Job) -> str:
    """Return why the level cannot run; empty where it can."""
    target, _, why = _machine()
    if target is None:
        return why
    return "" if _programs(job) else "no translation unit has a main()"


def run(job: Job) -> Level:
    """Build and run every program of the project, and keep what came of it."""
    target, hipcc, _ = _machine()
    if (why := absent(job)) or target is None:
        return not_run(why)
    programs = _programs(job)
    if job.execution is None:
        return job.not_asked("amd", steps(job))
    evidence = []
    for number, unit in enumerate(programs, 1):
        evidence.append(_program(job, hipcc, target, unit))
        job.tell("amd", number, len(programs))
    agree = sum(one.outcome is Outcome.HOLDS for one in evidence)
    made = concluded(evidence, f"{agree} of {len(programs)} programs give the original's output on {target.name}.")
    _keep(job, target, made)
    return made


def steps(job: Job) -> list[Step]:
    """Return the programs that are built and run here; none where nothing can run them."""
    if _machine()[0] is None:
        return []
    return built_programs("amd", _programs(job), lambda unit: arguments((job.root / unit.path).parent))


def _machine() -> tuple[GfxTarget | None, str, str]:
    """Return this machine's target and compiler; or why there is none."""
    if not NODE.exists():
        return None, "", "no AMD GPU: there is no /dev/kfd"
    if not os.access(NODE, os.R_OK | os.W_OK):
        return None, "", "/dev/kfd cannot be opened: join the group that owns it (render or video)"
    target = next(_gpus(), None)
    if target is None:
        return None, "", "no AMD GPU: the KFD topology lists no known GPU"
    root = os.environ.get("ROCM_PATH") or "/opt/rocm"
    hipcc = shutil.which("hipcc") or shutil.which("hipcc", path=f"{root}/bin")
    if hipcc is None:
        return None, "", "hipcc not found: it is neither in PATH nor under ROCM_PATH"
    return target, hipcc, ""


def _programs(job: Job) -> list[Unit]:
    all_units = units_of(job)
    programs = [unit for unit in all_units if MAIN.search(job.sources[unit.path])]
    known = {unit.path for unit in programs}
    return programs + [unit for unit in callers(job, all_units) if unit.path not in known and _wanted(job, unit)]


def _gpus() -> Iterator[GfxTarget]:
    """Yield the targets of this machine's GPUs, as the kernel driver knows them."""
    try:
        nodes = sorted(TOPOLOGY.iterdir())
    except OSError:
        return
    for node in nodes:
        try:
            text = (node / "properties").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = dict(line.split(None, 1) for line in text.splitlines() if len(line.split(None, 1)) == 2)
        version = found.get("gfx_target_version", "0").strip()
        target = from_kfd_version(int(version)) if version.isdigit() else None
        if target is not None:
            yield target


def _program(job: Job, hipcc: str, target: GfxTarget, unit: Unit) -> Evidence:
    given = arguments((job.root / unit.path).parent)
    size = target.wavefront_default

    def told(outcome: Outcome, detail: str) -> Evidence:
        return Evidence(unit.path, outcome, detail, target=target.name, wave_size=size)

    built = build(job, unit, job.root, job.scratch() / "program", _command(job, hipcc, target, unit))
    if built.program is None:
        absent = missing(built.said)
        return told(
            Outcome.UNKNOWN if absent else Outcome.BROKEN,
            how_to_get(absent) if absent else f"the build failed: {why(built.said)}",
        )
    said = execute(job, built.program, given, str(PurePosixPath(unit.path).parent))
    if not said.ok:
        return told(Outcome.BROKEN, f"the run failed: {why(said)}")
    wanted = _wanted(job, unit)
    if wanted is None or list(wanted.arguments) != given:
        return told(
            Outcome.UNKNOWN,
            "it runs, but no output of the original was recorded to compare with: run level nvidia on a machine with "
            "an NVIDIA GPU",
        )
    reason = difference(wanted.stdout, said.stdout)
    if reason is not None:
        return told(Outcome.BROKEN, f"its output differs from the original's on {wanted.device}: {reason}")
    return told(Outcome.HOLDS, f"its output is the same as the original's on {wanted.device}")


def _wanted(job: Job, unit: Unit) -> outputs.Output | None:
    """Return what the original printed where it ran; None where that is not kept."""
    before = next((part.before for part in job.parts if part.path == unit.path), None)
    return outputs.known(job.tree, unit.path, before or job.read(unit.path) or b"")


def _command(job: Job, hipcc: str, target: GfxTarget, unit: Unit) -> Command:
    """Return what builds a program; sources in C++ are HIP too, and so is what CUDA's names are in."""

    def command(sources: Sequence[Path], folders: Sequence[Path], libraries: Sequence[str], out: Path) -> list[str]:
        return [
            hipcc, f"--offload-arch={target.name}", standard(job.tree), "-O3",
            *(f"-D{name}={value}" for name, value in unit.defines.items()), *(f"-I{folder}" for folder in folders),
            "-x", "hip", *map(str, sources), "-x", "none", *(f"-l{library}" for library in libraries), "-o", str(out),
        ]  # fmt: skip

    return command


def _keep(job: Job, target: GfxTarget, made: Level) -> None:
    """Keep the level as evidence, with its date and the port that it is about."""
    generation = job.generations[-1].name if job.generations else ""
    record = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "target": target.name,
        "generation": generation,
        "level": msgspec.to_builtins(msgspec.structs.replace(made, number=7, name="amd")),
    }
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    job.tree.put(f"{PROOFS}/amd-{target.name}.json", text + b"\n")
