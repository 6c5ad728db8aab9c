"""How a machine is laid out for somebody who is to help from afar."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend import __version__
from rocmend.cli.check import SHOWN
from rocmend.cli.views.check import LABELS, glance_text
from rocmend.cli.views.diagnosis import TONE, gpu_rows, verdict
from rocmend.core.units import count_text
from rocmend.report.document import Block, Cell, Code, Document, Pairs, Section, Text, Tone, table

if TYPE_CHECKING:
    from rocmend.cli.check import Check
    from rocmend.cli.share import Benchmarked, Probed
    from rocmend.core.evidence import Evidence
    from rocmend.machine.facts import Machine

_MAX_REASON_CHARS = 300
_SHOWN_COMMANDS = 5


def share_document(
    check: Check, machine: Machine, probed: Probed | None, benchmarks: Sequence[Benchmarked], *, most: int
) -> Document:
    """Lay out what a helper wants to know first.

    Args:
        check: What was found out.
        machine: The facts.
        probed: The newest run of probes; None where there is none.
        benchmarks: The newest run of each benchmark.
        most: Rows that a list has at most.
    """
    diagnosis = check.diagnosis
    summary, tone = verdict(diagnosis)
    known = [key for key in SHOWN if key in check.facts and check.facts[key].value is not None]
    glance = [(LABELS[key], glance_text(key, check.facts[key].value), "") for key in known]
    rows = (*(gpu_rows(diagnosis.gpus) or (("GPU", "no AMD GPU that the driver shows", ""),)), *glance)
    blocks: list[Block] = [Section("The machine", (Pairs(rows),))]
    if diagnosis.findings:
        found = [
            [Cell(item.severity.value, TONE[item.severity]), Cell(item.title), Cell(item.entry_id)]
            for item in diagnosis.findings
        ]
        blocks.append(Section("Findings", _listed(["severity", "finding", "id"], found, most)))
    if diagnosis.undecided:
        ids = ", ".join(f"`{item.entry_id}`" for item in diagnosis.undecided[:most])
        blocks.append(Section("Could not be decided", (Text(ids),)))
    if probed is not None:
        blocks.append(_probes(probed, most))
    if benchmarks:
        ran = [[one.group, one.device, str(one.count - one.failed), str(one.failed)] for one in benchmarks]
        blocks.append(Section("Benchmarks", (table(["run", "device", "figures", "without a figure"], ran),)))
    packages = machine.value("packages", {})
    if isinstance(packages, dict) and packages:
        lines = [[Cell(str(name)), Cell(str(version))] for name, version in packages.items()]
        blocks.append(Section("Packages", _listed(["package", "version"], lines, most)))
    variables = [
        (key.removeprefix("env."), str(fact.value), "")
        for key, fact in sorted(machine.facts.items())
        if key.startswith("env.") and key != "env.collected" and fact.value is not None
    ]
    if variables:
        blocks.append(Section("Environment variables", (Pairs(tuple(variables[:most])),)))
    blocks.append(Section("To reproduce", (Code("\n".join(_commands(check, probed)), "bash"),)))
    footer = f"Written by `rocmend share`, rocmend {__version__}, from facts read on {diagnosis.captured_at}."
    targets = ", ".join(check.targets) or "no AMD GPU"
    return Document(f"{check.machine}: {targets}", summary, tone, tuple(blocks), footer)


def _listed(columns: Sequence[str], rows: Sequence[Sequence[Cell]], most: int) -> tuple[Block, ...]:
    shown: list[Block] = [table(columns, rows[:most])]
    if len(rows) > most:
        shown.append(Text(f"And {len(rows) - most} more.", Tone.MUTED))
    return tuple(shown)


def _probes(probed: Probed, most: int) -> Section:
    text = f"{len(probed.failed)} of {count_text(probed.count, 'operation')} failed in the run `{probed.group}`"
    where = f"{text}, on {probed.device}."
    if not probed.failed:
        return Section("Probes", (Text(where),))
    rows = [[Cell(item.subject), Cell(item.verdict.value, Tone.ERROR), Cell(_reason(item))] for item in probed.failed]
    return Section("Probes", (Text(where), *_listed(["operation", "verdict", "why"], rows, most)))


def _reason(evidence: Evidence) -> str:
    text = " ".join(evidence.reason.split())
    return text if len(text) <= _MAX_REASON_CHARS else f"{text[:_MAX_REASON_CHARS]} …"


def _commands(check: Check, probed: Probed | None) -> list[str]:
    workload = check.diagnosis.workload
    commands = [f"rocmend check{f' --for {workload}' if workload else ''}"]
    failed = probed.failed[:_SHOWN_COMMANDS] if probed is not None else ()
    return [*commands, *(f"rocmend probe --select {shlex.quote(item.subject)}" for item in failed)]
