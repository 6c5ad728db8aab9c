"""What is kept of a run: the timeline, the verdict and what it was a run of."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

import msgspec

from rocmend.core.records import SCHEMA_VERSION
from rocmend.core.verdict import Verdict

KINDS = ("probe", "trial", "bench", "calibration", "imported", "kernel-suite", "check")
"""What is kept as evidence: what `rocmend store ls --kind` takes."""


class Silence(StrEnum):
    """What a process did while it said nothing."""

    BLOCKED = "blocked"
    """It used no processor time: it waits for something."""
    SPINNING = "spinning"
    """It used a processor fully: it polls or loops."""
    WORKING = "working"
    """It used some processor time, or more than one processor: it may be computing."""
    GPU_STALLED = "gpu-stalled"
    """It waits, and the GPU says that it is busy without getting anywhere."""
    UNKNOWN = "unknown"
    """Its state could not be read (another host, a pod)."""


class PhaseSpan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stretch of a run between two marks in its output.

    Attributes:
        name: The phase that began, e.g. ``load-tensors``; ``start`` before the first mark.
        begin_ms: Since the run's start.
        end_ms: Since the run's start; of the last phase, when the run ended.
        mark: The output line that began it, cut at 200 characters.
        slow: It was allowed more silence than usual because first runs are known to be slow.
    """

    name: str
    begin_ms: float
    end_ms: float
    mark: str = ""
    slow: bool = False


class Artifact(msgspec.Struct, frozen=True):
    """A file kept beside the evidence, found by what it holds.

    Attributes:
        name: What it is, e.g. ``output.log``.
        sha256: Hash of its contents, its name in the store.
        size_bytes: Its size.
    """

    name: str
    sha256: str
    size_bytes: int


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of one run of something.

    Attributes:
        kind: One of ``KINDS``.
        subject: What was run, e.g. a probe's or a strategy's id.
        identity: Hash of everything that defines the run; runs with the same identity are repeats.
        verdict: What came out.
        reason: Why, in a sentence a person can act on.
        started_at: ISO time (UTC).
        time_ms: Wall time.
        gfx_target: The GPU's target; ``cpu`` or ``sm_90`` where it ran elsewhere; empty where unknown.
        machine: Content hash of the machine snapshot; empty where none was taken.
        versions: Package or tool to version.
        settings: What was set: environment, parameters, image, flags.
        timeline: Phases in order.
        last_phase: The phase after which it fell silent or in which it ended.
        silence: What it did while silent, where it was ended for silence.
        detail: What the kind of run adds: errors, tolerances, figures.
        artifacts: Files kept beside it.
        group: Id of the probe run or experiment that it belongs to.
        schema_version: Version of this record.
    """

    kind: str
    subject: str
    identity: str
    verdict: Verdict
    reason: str
    started_at: str
    time_ms: float
    gfx_target: str = ""
    machine: str = ""
    versions: dict[str, str] = {}
    settings: dict[str, Any] = {}
    timeline: tuple[PhaseSpan, ...] = ()
    last_phase: str = ""
    silence: Silence | None = None
    detail: dict[str, Any] = {}
    artifacts: tuple[Artifact, ...] = ()
    group: str = ""
    schema_version: int = SCHEMA_VERSION


def identity_of(definition: Any) -> str:
    """Return the hash that identifies a run: SHA-256 over the definition as canonical JSON.

    Args:
        definition: A JSON value or record holding everything that defines the run.
    """
    return hashlib.sha256(msgspec.json.encode(definition, order="deterministic")).hexdigest()
