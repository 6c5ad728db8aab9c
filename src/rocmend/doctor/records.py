"""What a diagnosis holds."""

from __future__ import annotations

import msgspec

from rocmend.core.records import SCHEMA_VERSION, CollectorRun, Finding, Phase, Risk, Severity


class GpuSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person wants to know of a GPU at a glance; None where it is not known.

    Attributes:
        index: As in ``gpu.0``.
        name: Marketing name.
        gfx_target: E.g. ``gfx1151``.
        compute_units: Compute units.
        wavefront_size: Lanes of a wavefront.
        is_apu: It shares the processor's memory.
        vram_total_bytes: Dedicated memory (of an APU: its carve-out).
        gtt_total_bytes: System memory that it can map.
        memory_ceiling_bytes: What one process can allocate.
        peak_fp16_tflops: Dense FP16 peak at boost clock.
        bandwidth_gb_s: Memory bandwidth, 1e9 bytes a second.
        torch_service: How the installed PyTorch would serve it: native, generic, override, none.
        torch_override: ``HSA_OVERRIDE_GFX_VERSION`` that would make it run inside its class.
    """

    index: int
    name: str | None = None
    gfx_target: str | None = None
    compute_units: int | None = None
    wavefront_size: int | None = None
    is_apu: bool | None = None
    vram_total_bytes: int | None = None
    gtt_total_bytes: int | None = None
    memory_ceiling_bytes: int | None = None
    peak_fp16_tflops: float | None = None
    bandwidth_gb_s: float | None = None
    torch_service: str | None = None
    torch_override: str | None = None


class PythonSummary(msgspec.Struct, frozen=True):
    """The Python environment that a diagnosis is about.

    Attributes:
        prefix: Its folder.
        version: Its version.
        found_by: Why it is the one: ``--python``, VIRTUAL_ENV, ``python3 on PATH`` …
    """

    prefix: str
    version: str
    found_by: str


class Missing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact that was wanted and is not known.

    Attributes:
        key: Its key.
        reason: Why it is not known.
        establishes: What would establish it.
    """

    key: str
    reason: str
    establishes: str = ""


class Undecided(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry of which it cannot be told whether it applies.

    Attributes:
        entry_id: The entry.
        title: Its title, with what is known filled in.
        severity: How much it would matter.
        subject: What it concerns.
        missing: The facts that would decide.
        notes: Operations that made no sense on the values found.
        gfx: The gfx targets that it is about; empty where it is about any.
    """

    entry_id: str
    title: str
    severity: Severity
    subject: str
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()
    gfx: tuple[str, ...] = ()


class Alternative(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another way than a step's.

    Attributes:
        title: What it does.
        interim: It helps until the step is done; False: it can be done in its place.
        action: Id of what is done; empty where it has none.
        text: More about it.
        commands: Shell lines.
        needs: ``root``, ``reboot`` …
        risk: What it can cost.
        risk_note: What exactly the risk is.
        undo: How to take it back.
        settles: Ids of the entries that name it.
    """

    title: str
    interim: bool
    action: str = ""
    text: str = ""
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    risk: Risk = Risk.NONE
    risk_note: str = ""
    undo: str = ""
    settles: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to do, whatever the number of findings that ask for it.

    Attributes:
        number: From 1; 0 for what has no place in the order.
        action: Stable id of what is done, with its argument: ``unset-variable:HSA_XNACK``.
        title: What it is, in one line.
        phase: Where it stands.
        text: More about it, in Markdown.
        commands: Shell lines that do it.
        needs: ``root``, ``reboot``, ``reinstall``, ``rebuild``, ``bios``.
        risk: The highest that a finding names.
        risk_note: What exactly the risk is.
        check: A command that exits with 0 once it is done.
        expect: What the check prints; without a check, what a person sees.
        undo: How to take it back, in Markdown.
        by_hand: A script cannot do it.
        after: Numbers of the steps that must come before.
        joins: Ids of the actions that it carries out together; empty for one action.
        settles: Ids of the entries whose findings it settles.
        serves: Whether it settles none of these by itself, but only serves to.
        alternatives: Other ways.
    """

    number: int
    action: str
    title: str
    phase: Phase
    text: str = ""
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    risk: Risk = Risk.NONE
    risk_note: str = ""
    check: str = ""
    expect: str = ""
    undo: str = ""
    by_hand: bool = False
    after: tuple[int, ...] = ()
    joins: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()
    serves: bool = False
    alternatives: tuple[Alternative, ...] = ()


class Decide(msgspec.Struct, frozen=True, omit_defaults=True):
    """What would decide questions that the facts leave open.

    Attributes:
        reason: Why the facts are not known.
        command: What to run; empty where no command is known.
        how: What the command does and what to do then, or what else establishes the facts.
        keys: The facts.
        entries: The entries that it would decide.
    """

    reason: str
    command: str = ""
    how: str = ""
    keys: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to do about everything that was found.

    Attributes:
        steps: In order.
        optional: What nothing is wrong without, in no order.
        investigate: What to look at where a cause is not known yet, in no order.
        decide: What would decide what could not be decided.
    """

    steps: tuple[Step, ...] = ()
    optional: tuple[Step, ...] = ()
    investigate: tuple[Step, ...] = ()
    decide: tuple[Decide, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, omit_defaults=True):
    """What doctor found out about a machine.

    Attributes:
        machine: The machine's name.
        captured_at: When its facts were read (ISO, UTC).
        workload: What it is for, where a person said so.
        gpus: Its GPUs.
        findings: What applies, most severe first.
        plan: What to do about it.
        undecided: What could not be told, most severe first.
        healthy: Number of entries that were checked and do not apply.
        collector_problems: Collectors that did not end well.
        knowledge_problems: Entries that could not be loaded or evaluated.
        python: The Python environment; None where there is none.
        hypothetical_target: The gfx target that was asked for and that the machine does not have: then nothing of the
            machine was judged. Empty for the machine as it is.
        no_amd_gpu: The machine was judged and has no AMD GPU.
        schema_version: Version of this record.
    """

    machine: str
    captured_at: str
    workload: str | None
    gpus: tuple[GpuSummary, ...]
    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    healthy: int
    plan: Plan = Plan()
    collector_problems: tuple[CollectorRun, ...] = ()
    knowledge_problems: tuple[str, ...] = ()
    python: PythonSummary | None = None
    hypothetical_target: str = ""
    no_amd_gpu: bool = False
    schema_version: int = SCHEMA_VERSION

    @property
    def nothing_to_do(self) -> bool:
        """Whether the machine was judged, and nothing that was found needs a step: there are only optional ones."""
        plan, serious = self.plan, {Severity.ERROR, Severity.WARNING}
        needed = plan.steps or plan.investigate or any(one.severity in serious for one in self.findings)
        return bool(plan.optional) and not needed and not self.hypothetical_target and not self.gpu_unseen

    @property
    def gpu_unseen(self) -> bool:
        """Whether the machine was judged without its GPU: none is shown, and it is not known that there is none."""
        return not self.gpus and not self.no_amd_gpu and not self.hypothetical_target

    @property
    def about(self) -> str:
        """What it speaks about: ``this machine``, or ``gfx1201 (not in this machine)``."""
        if not self.hypothetical_target:
            return self.machine
        name = next((gpu.name for gpu in self.gpus if gpu.name), "")
        return f"{f'{name}, ' if name else ''}{self.hypothetical_target} (not in {self.machine})"
