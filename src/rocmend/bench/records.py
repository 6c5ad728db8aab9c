"""What was measured, and the evidence that is kept of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from rocmend.bench.calibration import Calibration
from rocmend.bench.case import Case, Setting
from rocmend.bench.conclusion import Conclusion
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import Summary
from rocmend.bench.suite import Bound
from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.verdict import Verdict

KIND = "bench"
"""The kind of evidence that benchmarks leave."""

IMPORTED = "imported"
"""The kind of others' results: never ``bench``, so that none is taken for what this machine did."""

UNHEALTHY = "its machine was not healthy after the run"
"""How the note at a figure begins whose host failed its check."""


BEFORE = "before the run"
"""Name of the condition that says what was noted then."""


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case under a setting.

    Attributes:
        case: The case.
        verdict: ``pass`` where there is a figure.
        reason: Why there is none.
        prepared: How it was made ready.
        blocks: Seconds of each run, in the blocks that they were taken in.
        summary: Of the seconds; None where there is no figure.
        started_at: ISO time (UTC) at which the case began; settings that were measured in turn have it in common.
        time_ms: Wall time of the case, all its settings.
        setting: The setting.
        bounds: What no run can exceed.
        telemetry: What sensors said meanwhile: clocks, power, temperature; see ``telemetry``.
        waited: By block, the share of its time that it waited for a processor that others had; none on a GPU.
        conditions: What it depended on besides its setting, by name: variables of the environment, and what was noted
            before the run (battery, load).
        origin: What made it: ``command``, the command line, and ``rocmend``, its version and commit.
        machine: Where it was read back from a record or a file: what is known about its machine, by name.
    """

    case: Case
    verdict: Verdict
    reason: str
    prepared: Prepared
    blocks: tuple[tuple[float, ...], ...]
    summary: Summary | None
    started_at: str
    time_ms: float
    setting: Setting = Setting("default")
    bounds: tuple[Bound, ...] = ()
    telemetry: dict[str, Any] = {}
    waited: tuple[float, ...] = ()
    conditions: dict[str, str] = {}
    origin: dict[str, str] = {}
    machine: dict[str, str] = {}

    @property
    def figure(self) -> float | None:
        """The figure of the median run, in the case's unit."""
        return None if self.summary is None else self.case.figure(self.summary.median)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the figure, the lower end first; None where there is none."""
        if self.summary is None or self.summary.low is None or self.summary.high is None:
            return None
        ends = (self.case.figure(self.summary.low), self.case.figure(self.summary.high))
        return min(ends), max(ends)

    @property
    def subject(self) -> Subject:
        """Where it ran."""
        return self.prepared.subject

    @property
    def told(self) -> dict[str, str]:
        """What differs from run to run and is to be told where two are compared, by name: no part of the case.

        Conditions, whose definition of a network it is, which attention it took, and the options that llama-bench says
        were in force, defaults among them.
        """
        detail = self.prepared.detail
        options = detail.get("options") if self.case.suite == "llama" else None
        named = {name: str(detail[name]) for name in ("definition", "attention") if detail.get(name)}
        return {
            **self.conditions,
            **named,
            **{f"llama-bench {name}": str(value) for name, value in (options or {}).items()},
        }

    @property
    def unhealthy(self) -> str:
        """Why its machine was not healthy; empty where nothing is known against it."""
        notes = (str(note) for note in self.telemetry.get("notes", ()))
        return next((note for note in notes if note.startswith(UNHEALTHY)), self.prepared.quarantine)

    def in_turn_with(self, other: Measured) -> bool:
        """Return whether their blocks were taken in turn, so that they can be compared block by block."""
        return self.started_at == other.started_at and self.case.id == other.case.id


class BenchRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of a suite.

    Attributes:
        group: Its id in the store; ``--resume`` takes it. Empty where nothing is kept.
        suite: The suite's name.
        title: What it measures.
        settings: The settings, the one that others are compared with first.
        results: By case in the suite's order, then by setting.
        resumed: How many an earlier run had left.
        not_run: Case and setting of those that were not started.
        quarantine: Why nothing more was started on this host.
        notes: What else is to be known about the run.
        conclusions: What the figures say.
        machine: What is known about the machine, by name.
        calibrations: What was found by trying before the first case.
        named: The cases or settings were asked for by name; where the device can't do one, that is a finding.
    """

    group: str
    suite: str
    title: str
    settings: tuple[Setting, ...]
    results: tuple[Measured, ...]
    resumed: int = 0
    not_run: tuple[str, ...] = ()
    quarantine: str = ""
    notes: tuple[str, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    machine: dict[str, str] = {}
    calibrations: tuple[Calibration, ...] = ()
    named: bool = False

    @property
    def failed(self) -> tuple[Measured, ...]:
        """Results without a figure that should have one."""
        quiet = {Verdict.PASS, Verdict.SKIPPED, Verdict.UNSUPPORTED}
        return tuple(result for result in self.results if result.verdict not in quiet)

    @property
    def lacking(self) -> tuple[Measured, ...]:
        """What this device does not support and should: what was named, and settings without any figure."""
        timed = {item.setting.id for item in self.results if item.summary}
        unsupported = (item for item in self.results if item.verdict is Verdict.UNSUPPORTED)
        return tuple(item for item in unsupported if self.named or item.setting.id not in timed)

    @property
    def clean(self) -> bool:
        """Nothing lacks a figure but what was tried without being named and this device does not support."""
        missing = self.failed or self.not_run or self.quarantine or self.lacking
        return not missing and any(item.summary for item in self.results)


def subject_of(case: Case, setting: Setting) -> str:
    """Return what a case under a setting is called in the store."""
    return f"{case.id} @ {setting.id}"


def on_machine(results: Iterable[Measured], machine: dict[str, str]) -> tuple[Measured, ...]:
    """Return measurements that were read back, with what is known about their machine."""
    return tuple(msgspec.structs.replace(item, machine=machine) for item in results)


def row_of(measured: Measured) -> dict[str, Any]:
    """Return a measurement as JSON values, with its figure and unit; ``Measured`` can be read from it."""
    ends = {} if measured.interval is None else dict(zip(("low", "high"), measured.interval, strict=True))
    figure = {} if measured.figure is None else {"figure": measured.figure, **ends, "unit": measured.case.unit}
    kept: dict[str, Any] = msgspec.to_builtins(measured)
    kept.pop("machine", None)  # a run says it once
    return {**figure, **kept}


def evidence_of(measured: Measured, group: str) -> Evidence:
    """Return the record that is kept of a measurement; ``measured_of`` reads it back."""
    case, setting, prepared = measured.case, measured.setting, measured.prepared
    subject = prepared.subject
    settings = {name: value for name, value in (("env", setting.env), ("options", setting.options)) if value}
    kept: dict[str, Any] = msgspec.to_builtins(measured)
    for name in ("verdict", "reason", "started_at", "time_ms", "machine"):
        kept.pop(name, None)
    for name in ("verdict", "reason", "subject", "log"):
        kept["prepared"].pop(name, None)
    return Evidence(
        kind=KIND,
        subject=subject_of(case, setting),
        identity=identity_of(
            {
                "kind": KIND,
                "case": case.id,
                "parameters": case.parameters,
                "env": setting.env,
                "options": setting.options,
                "device": subject.device_name,
                "gfx_target": subject.gfx_target,
                "versions": subject.versions,
                "definition": prepared.detail.get("definition", ""),
                "variables": {name: value for name, value in measured.conditions.items() if name != BEFORE},
            }
        ),
        verdict=measured.verdict,
        reason=measured.reason,
        started_at=measured.started_at,
        time_ms=measured.time_ms,
        gfx_target=subject.gfx_target,
        versions=subject.versions,
        settings={"setting": setting.id, "device": subject.device, **settings},
        detail={"device_name": subject.device_name, "measured": kept},
        group=group,
    )


def measured_of(evidence: Evidence) -> Measured:
    """Read a measurement back from its record.

    Raises:
        msgspec.ValidationError: It is no record of one, or a newer rocmend wrote it.
    """
    kept = dict(evidence.detail.get("measured") or {})
    shared = evidence.detail.get("shared")
    if isinstance(shared, dict) and shared.get("unhealthy"):  # the host's check failed after the run
        sensors = dict(kept.get("telemetry") or {})
        kept["telemetry"] = {**sensors, "notes": [*sensors.get("notes", ()), f"{UNHEALTHY}: {shared['unhealthy']}"]}
    subject = Subject(
        evidence.gfx_target,
        str(evidence.settings.get("device", "")),
        str(evidence.detail.get("device_name", "")),
        evidence.versions,
    )
    outcome = {"verdict": evidence.verdict.value, "reason": evidence.reason}
    kept["prepared"] = {**dict(kept.get("prepared") or {}), **outcome, "subject": msgspec.to_builtins(subject)}
    kept |= {**outcome, "started_at": evidence.started_at, "time_ms": evidence.time_ms}
    return msgspec.convert(kept, Measured, strict=False)
