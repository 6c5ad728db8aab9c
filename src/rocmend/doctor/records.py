"""What a diagnosis holds."""

from __future__ import annotations

import msgspec

from rocmend.core.records import SCHEMA_VERSION, CollectorRun, Finding, Severity


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
        peak_fp16_tflops: Dense FP16 peak.
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


class Diagnosis(msgspec.Struct, frozen=True, omit_defaults=True):
    """What doctor found out about a machine.

    Attributes:
        machine: The machine's name.
        captured_at: When its facts were read (ISO, UTC).
        workload: What it is for, where a person said so.
        gpus: Its GPUs.
        findings: What applies, most severe first.
        undecided: What could not be told, most severe first.
        healthy: Number of entries that were checked and do not apply.
        collector_problems: Collectors that did not end well.
        knowledge_problems: Entries that could not be loaded or evaluated.
        hypothetical_target: The gfx target that was asked for and that the machine does not have: then nothing of the
            machine was judged. Empty for the machine as it is.
        schema_version: Version of this record.
    """

    machine: str
    captured_at: str
    workload: str | None
    gpus: tuple[GpuSummary, ...]
    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    healthy: int
    collector_problems: tuple[CollectorRun, ...] = ()
    knowledge_problems: tuple[str, ...] = ()
    hypothetical_target: str = ""
    schema_version: int = SCHEMA_VERSION

    @property
    def about(self) -> str:
        """What it speaks about: ``this machine``, or ``gfx1201, not this machine``."""
        return f"{self.hypothetical_target}, not {self.machine}" if self.hypothetical_target else self.machine
