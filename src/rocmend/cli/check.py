"""The main job: diagnose a machine, say whether what is installed runs on its GPU, and what to set and install."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

from rocmend.cli.levels import Level, levels_of
from rocmend.cli.plan import with_installs
from rocmend.core.records import Fact, Severity
from rocmend.core.units import listed
from rocmend.doctor.areas import Area, areas
from rocmend.doctor.diagnose import diagnose
from rocmend.doctor.records import Diagnosis
from rocmend.kb.action import action_name
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine
from rocmend.machine.hypothetical import target_alone
from rocmend.setup.choose import Choices, choose
from rocmend.setup.environment import Environment, environment

if TYPE_CHECKING:
    from rocmend.bench.records import BenchRun
    from rocmend.cli.port_check import CheckedProject
    from rocmend.codeobject.model import Inspection
    from rocmend.codeobject.service import Service
    from rocmend.probe.records import ProbeRun

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_WORKLOAD = "pytorch"
"""What the environment and the install advice are for where nobody said."""


class InspectedWheel(msgspec.Struct, frozen=True):
    """A wheel that was inspected for the report, with its verdict for each target."""

    inspection: Inspection
    services: dict[str, Service]


class Earlier(msgspec.Struct, frozen=True):
    """A run of a benchmark that the store has.

    Attributes:
        group: Its id.
        title: What it measured.
        started_at: When (ISO, UTC).
        text: What came out, in a sentence or two.
    """

    group: str
    title: str
    started_at: str
    text: str


class Check(msgspec.Struct, frozen=True):
    """Everything a check found out.

    Attributes:
        machine: The machine's name.
        facts: The facts that the report shows at its head, with their sources.
        targets: The gfx targets it speaks about.
        diagnosis: What doctor says.
        areas: The verdict on the GPU, driver, firmware, ROCm, PyTorch and memory.
        wheels: Inspected wheels.
        choices: How to install PyTorch, for each target.
        environment: What to set.
        stages: What was done, and for how long (ms).
        probes: Operations that were run on this machine; None where none were.
        not_probed: Why none were.
        speeds: What was measured on this machine.
        not_measured: Why nothing was.
        project: A project to port; None where none was named.
        asked_with: The options that name the machine in another command: ``--machine strix-halo``.
        levels: Which levels of proof are possible here.
        earlier: What was measured on this machine before.
    """

    machine: str
    facts: dict[str, Fact]
    targets: tuple[str, ...]
    diagnosis: Diagnosis
    areas: tuple[Area, ...]
    wheels: tuple[InspectedWheel, ...]
    choices: tuple[Choices, ...]
    environment: Environment
    stages: dict[str, float]
    probes: ProbeRun | None = None
    not_probed: str = ""
    speeds: tuple[BenchRun, ...] = ()
    not_measured: str = ""
    project: CheckedProject | None = None
    asked_with: str = ""
    levels: tuple[Level, ...] = ()
    earlier: tuple[Earlier, ...] = ()

    @property
    def serious(self) -> bool:
        """Whether there is an error, a warning, a figure missing, a wheel that does not run, a project to port."""
        found = any(item.severity in {Severity.ERROR, Severity.WARNING} for item in self.diagnosis.findings)
        refused = any(
            service.verdict in {"none", "unknown"} for wheel in self.wheels for service in wheel.services.values()
        )
        probed = self.probes is not None and not self.probes.clean
        missing = any(run.failed for run in self.speeds)
        return found or refused or probed or missing or (self.project is not None and self.project.serious)


def run_check(
    machine: Machine,
    knowledge: Knowledge,
    *,
    workload: str | None = None,
    wheels: Sequence[Path] = (),
    probe: Callable[[], ProbeRun | str] = lambda: "",
    bench: Callable[[ProbeRun | str], tuple[BenchRun, ...] | str] = lambda _tried: "",
    project: Callable[[Sequence[str]], CheckedProject] | None = None,
    progress: Callable[[str], None] = lambda _text: None,
    asked_with: str = "",
    earlier: Sequence[Earlier] = (),
) -> Check:
    """Check a machine.

    Args:
        machine: Its facts.
        knowledge: The entries.
        workload: What it is for.
        wheels: Wheels, libraries or folders to be inspected for its GPUs.
        probe: Runs operations on this machine, or says why it does not.
        bench: Told what probing came to, measures something on this machine, or says why it does not.
        project: Plans and proves the port of a project for these gfx targets.
        progress: Told what is being done.
        asked_with: The options that name the machine in another command.
        earlier: What was measured on it before; what is measured now replaces what has the same title.
    """
    stages = _Stages(progress)
    machine = target_alone(machine)
    gpus = [str(machine.value(f"gpu.{index}.gfx_target", "")) for index in machine.indices("gpu")]
    targets = tuple(dict.fromkeys(target for target in gpus if target))
    diagnosis = stages.run("diagnosis", diagnose, machine, knowledge)
    diagnosis = stages.run("plan", with_installs, diagnosis, machine, knowledge, workload)
    hip = str(machine.value("torch.hip_version") or "")
    inspected = tuple(stages.run(f"inspecting {wheel.name}", _inspect, wheel, targets, hip) for wheel in wheels)
    choices = stages.run("install advice", _choices, machine, knowledge, targets, workload)
    settings = stages.run("environment", _settings, diagnosis, machine, knowledge, workload)
    probed = stages.run("probing operations", probe)
    measured = stages.run("measuring", bench, probed)
    planned = stages.run("planning and proving the port", project, targets) if project is not None else None
    facts = {key: machine.facts[key] for key in SHOWN if key in machine.facts}
    now = set() if isinstance(measured, str) else {run.title for run in measured}
    return Check(
        machine=machine.name,
        facts=facts,
        targets=targets,
        diagnosis=diagnosis,
        areas=areas(machine, diagnosis),
        wheels=inspected,
        choices=choices,
        environment=settings,
        stages=stages.times,
        probes=None if isinstance(probed, str) else probed,
        not_probed=probed if isinstance(probed, str) else "",
        speeds=() if isinstance(measured, str) else measured,
        not_measured=measured if isinstance(measured, str) else "",
        project=planned,
        asked_with=asked_with,
        levels=levels_of(machine, targets),
        earlier=tuple(one for one in earlier if one.title not in now),
    )


_RENEWS = {"update-rocm": "rocm.version", "install-native-torch": "torch.rocm_version"}
"""Which version a step of the plan replaces by a newer one."""
_NEWER = "99.0"


def _settings(diagnosis: Diagnosis, machine: Machine, knowledge: Knowledge, workload: str | None) -> Environment:
    """Return what to set; of what a newer version makes needless it says until which step of the plan."""
    workload = workload or DEFAULT_WORKLOAD
    now = environment(machine, knowledge, workload)
    steps = [step for step in diagnosis.plan.steps if action_name(step.action) in _RENEWS]
    keys = [_RENEWS[action_name(step.action)] for step in steps]
    newer = {key: Fact(key, _NEWER, "plan") for key in keys if key in machine.facts}
    if not newer:
        return now
    renewed = msgspec.structs.replace(machine, facts={**machine.facts, **newer})
    then = {(line.name, line.action, line.value) for line in environment(renewed, knowledge, workload).lines}
    numbers = listed([str(step.number) for step in steps])
    until = f"until {'steps' if len(steps) > 1 else 'step'} {numbers} of the plan"
    lines = tuple(
        line
        if (line.name, line.action, line.value) in then
        else msgspec.structs.replace(line, why=f"{line.why}; only {until}")
        for line in now.lines
    )
    return msgspec.structs.replace(now, lines=lines)


class _Stages:
    """Runs the stages of a check one by one, tells what is being done and keeps how long each took."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self.progress = progress
        self.times: dict[str, float] = {}

    def run(self, name: str, function: Callable[P, R], *args: P.args, **settings: P.kwargs) -> R:
        """Call the function as a stage."""
        self.progress(name)
        start = time.perf_counter()
        result = function(*args, **settings)
        self.times[name] = round((time.perf_counter() - start) * 1000, 1)
        return result


def _choices(
    machine: Machine, knowledge: Knowledge, targets: Sequence[str], workload: str | None
) -> tuple[Choices, ...]:
    return tuple(choose(machine, knowledge, "torch", name, workload) for name in targets)


def _inspect(path: Path, targets: Sequence[str], hip: str) -> InspectedWheel:
    from rocmend.codeobject.inspect import inspect_path
    from rocmend.codeobject.service import serve

    inspection = inspect_path(path)
    return InspectedWheel(inspection, {target: serve(inspection, target, hip=hip) for target in targets})


SHOWN = (
    "os.name",
    "kernel.release",
    "host.kind",
    "cpu.model",
    "memory.total_bytes",
    "amdgpu.origin",
    "amdgpu.version",
    "rocm.version",
    "rocm.path",
    "python.version",
    "python.prefix",
    "torch.version",
    "torch.backend",
    "torch.gfx_targets",
    "triton.version",
    "vulkan.selected",
    "kernel.cmdline",
)
"""Facts at the head of a report, in this order, where they are known."""
