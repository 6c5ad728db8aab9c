"""Level 7: the port's programs, built with the ROCm that is here and run on its GPU.

What they print is compared with what the originals printed on an NVIDIA GPU, where level 5 ran and kept it. The result
is kept as evidence in ``.rocmend/port/proofs``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rocmend.codeobject.hip.headers import how_to_get
from rocmend.core.files import write_atomic
from rocmend.core.gfx import GfxTarget, from_kfd_version
from rocmend.core.supervise import CommandResult, run_command
from rocmend.port.verify import outputs
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.running import BUILD_LIMIT_S, MAIN, RUN_LIMIT_S, arguments, difference, missing, why
from rocmend.port.verify.units import Unit, folder_of_header, standard, units

__all__ = ["run"]

NODE = Path("/dev/kfd")
TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
PROOFS = ".rocmend/port/proofs"


def run(job: Job) -> Level:
    """Build and run every program of the project, and keep what came of it."""
    if not NODE.exists():
        return not_run("no AMD GPU: there is no /dev/kfd")
    if not os.access(NODE, os.R_OK | os.W_OK):
        return not_run("/dev/kfd cannot be opened: join the group that owns it (render or video)")
    target = next(_gpus(), None)
    if target is None:
        return not_run("no AMD GPU: the kernel driver's topology lists none that is known")
    root = os.environ.get("ROCM_PATH") or "/opt/rocm"
    hipcc = shutil.which("hipcc") or shutil.which("hipcc", path=f"{root}/bin")
    if hipcc is None:
        return not_run("no hipcc: neither the PATH nor ROCM_PATH leads to one")
    programs = [unit for unit in units(job.sources) if MAIN.search(job.sources[unit.path])]
    if not programs:
        return not_run("no translation unit is a program of its own")
    evidence = []
    for number, unit in enumerate(programs, 1):
        evidence.append(_program(job, hipcc, target, unit))
        job.tell("amd", number, len(programs))
    agree = sum(one.outcome is Outcome.HOLDS for one in evidence)
    made = concluded(evidence, f"{agree} of {len(programs)} programs print on {target.name} what the originals print.")
    _keep(job, target, made)
    return made


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
    said = _ran(job, hipcc, target, unit, given)
    size = target.wavefront_default
    if not said.ok:
        absent = missing(said)
        outcome = Outcome.UNKNOWN if absent else Outcome.BROKEN
        detail = how_to_get(absent) if absent else f"it does not build or run: {why(said)}"
        return Evidence(unit.path, outcome, detail, target=target.name, wave_size=size)
    before = next((part.before for part in job.parts if part.path == unit.path), None)
    wanted = outputs.known(job.root, unit.path, before or job.sources[unit.path])
    if wanted is None or list(wanted.arguments) != given:
        detail = "it runs to its end; what the original prints is not kept: run level nvidia where there is such a GPU"
        return Evidence(unit.path, Outcome.UNKNOWN, detail, target=target.name, wave_size=size)
    reason = difference(wanted.stdout, said.stdout)
    if reason is not None:
        detail = f"it prints something else than the original on {wanted.device}: {reason}"
        return Evidence(unit.path, Outcome.BROKEN, detail, target=target.name, wave_size=size)
    detail = f"it prints what the original printed on {wanted.device}"
    return Evidence(unit.path, Outcome.HOLDS, detail, target=target.name, wave_size=size)


def _ran(job: Job, hipcc: str, target: GfxTarget, unit: Unit, given: Sequence[str]) -> CommandResult:
    """Build a program and run it; where it does not build, return what hipcc said."""
    program = job.scratch() / "program"
    folders = [job.root / folder for folder in unit.folders]
    while True:
        built = run_command(
            [
                hipcc, "-x", "hip", f"--offload-arch={target.name}", standard(job.root), "-O3",
                *(f"-D{name}={value}" for name, value in unit.defines.items()), *(f"-I{folder}" for folder in folders),
                "-o", str(program), str(job.root / unit.path),
            ],
            time_limit_s=BUILD_LIMIT_S,
        )  # fmt: skip
        absent = missing(built)
        more = folder_of_header(absent, job.sources) if absent else None
        if more is None or job.root / more in folders:
            break
        folders.append(job.root / more)
    if not built.ok or not program.is_file():
        return built
    return run_command([str(program), *given], time_limit_s=RUN_LIMIT_S)


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
    write_atomic(job.root / PROOFS / f"amd-{target.name}.json", text + b"\n")
