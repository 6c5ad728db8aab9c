"""How the store's records are laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.records import KIND, measured_of
from rocmend.cli.views.bench_figures import interval_text
from rocmend.cli.views.diagnosis import TONE
from rocmend.cli.views.machine import value_text
from rocmend.core.records import Severity
from rocmend.core.units import count_text, size_text, time_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import (
    Block,
    Cell,
    Code,
    Document,
    Pairs,
    Section,
    Span,
    Timeline,
    TimelineRow,
    Tone,
    table,
)
from rocmend.report.visible import visible

if TYPE_CHECKING:
    from rocmend.core.evidence import Evidence
    from rocmend.machine.facts import Machine
    from rocmend.store.records import Damage, GcReport, StoredEvidence, StoredGroup

VERDICT_TONE = {
    Verdict.PASS: Tone.GOOD,
    Verdict.WRONG_OUTPUT: Tone.ERROR,
    Verdict.SLOW: Tone.WARNING,
    Verdict.HANG: Tone.ERROR,
    Verdict.CRASH: Tone.ERROR,
    Verdict.GPU_RESET: Tone.ERROR,
    Verdict.OOM: Tone.WARNING,
    Verdict.SILENT_CPU_FALLBACK: Tone.WARNING,
    Verdict.UNSUPPORTED: Tone.MUTED,
    Verdict.INFRA: Tone.WARNING,
    Verdict.SKIPPED: Tone.MUTED,
}

_LONG_CHARS = 160
_LISTED = 20


def list_document(records: Sequence[StoredEvidence], *, more: bool, narrowed: bool) -> Document:
    """Lay out a list of records."""
    if not records:
        return _nothing("Kept evidence", narrowed=narrowed)
    rows: list[list[str | Cell]] = [
        [
            record.id,
            _outcome_cell(record.evidence),
            visible(f"{record.evidence.kind} {record.evidence.subject}"),
            visible(record.evidence.gfx_target),
            time_text(record.evidence.time_ms),
        ]
        for record in records
    ]
    counts: dict[str, int] = {}
    for record in records:
        outcome = _NOTHING_RUN if _only_diagnosed(record.evidence) else record.evidence.verdict.value
        counts[outcome] = counts.get(outcome, 0) + 1
    summary = f"{count_text(len(records), 'record')}: {_counts_text(counts)}"
    if more:
        summary = f"The newest {summary}; there are more (--limit 0 lists all)"
    grid = table(["id", "verdict", "run", "target", "took"], rows)
    footer = "Ids begin with the start of the run, in UTC. `rocmend store show ID` shows a record."
    return Document("Kept evidence", f"{summary}.", blocks=(grid,), footer=footer)


def _nothing(title: str, *, narrowed: bool) -> Document:
    """Say why nothing is listed, and what to do."""
    if narrowed:
        summary = "No record matches these options. `rocmend store ls` without them lists the newest records."
    else:
        summary = "The store is empty. `rocmend check`, `rocmend probe` and `rocmend lab run` add their results."
    return Document(title, summary, Tone.MUTED)


def groups_document(groups: Sequence[StoredGroup], *, more: bool = False) -> Document:
    """Lay out the runs: of probes, benchmarks and experiments."""
    if not groups:
        return _nothing("Kept runs", narrowed=False)
    rows = [
        [visible(group.group), str(group.count), _counts_text(group.verdicts), group.first[:15], group.last[:15]]
        for group in groups
    ]
    grid = table(["id", "records", "verdicts", "first record", "last record"], rows)
    footer = "Times are UTC. `rocmend store ls --group ID` lists a run's records."
    summary = f"The newest {len(groups)} runs; `--limit 0` lists all." if more else f"{count_text(len(groups), 'run')}."
    return Document("Kept runs", summary, blocks=(grid,), footer=footer)


def _verdict_cell(verdict: Verdict) -> Cell:
    return Cell(verdict.value, VERDICT_TONE[verdict])


_NOTHING_RUN = "diagnosed only"


def _only_diagnosed(evidence: Evidence) -> bool:
    """Whether it is a check that ran nothing on a GPU: what counts is what was found."""
    return evidence.kind == "check" and evidence.verdict is Verdict.SKIPPED


def _outcome_cell(evidence: Evidence) -> Cell:
    """Return the verdict; for a check that ran nothing, how many errors or warnings it found."""
    if not _only_diagnosed(evidence):
        return _verdict_cell(evidence.verdict)
    found = evidence.detail.get("findings")
    for level in (Severity.ERROR, Severity.WARNING):
        listed = found.get(level.value) if isinstance(found, dict) else None
        if isinstance(listed, list) and listed:
            return Cell(count_text(len(listed), level.value), TONE[level])
    return Cell("no errors", Tone.MUTED)


def _counts_text(counts: Mapping[str, int]) -> str:
    order = {verdict.value: place for place, verdict in enumerate(Verdict)}
    return ", ".join(f"{counts[name]} {name}" for name in sorted(counts, key=lambda name: order.get(name, len(order))))


def record_document(record: StoredEvidence, machine: Machine | None, repeats: Mapping[str, int]) -> Document:
    """Lay out one record: what was run, what came out, its phases, its detail, its artifacts."""
    evidence = record.evidence
    figure = _figure(evidence)
    blocks: list[Block] = [Pairs(_head(record, machine, repeats))]
    if evidence.timeline:
        blocks.append(Section("Phases", _phase_blocks(evidence)))
    for title, values in (
        ("Settings", evidence.settings),
        ("Versions", evidence.versions),
        ("Detail", {name: value for name, value in evidence.detail.items() if not (figure and name == "measured")}),
    ):
        if values:
            blocks.append(Section(title, _values(values)))
    if evidence.artifacts:
        rows = [[visible(item.name), size_text(item.size_bytes), item.sha256[:16]] for item in evidence.artifacts]
        blocks.append(Section("Artifacts", (table(["name", "size", "SHA-256 begins"], rows),)))
    footer = f"`rocmend store show {record.id} --artifact NAME` writes an artifact to standard output."
    reason = visible(evidence.reason) or figure
    verdict = _NOTHING_RUN if _only_diagnosed(evidence) else evidence.verdict.value
    summary = f"{verdict}: {reason}" if reason else verdict
    title = f"{visible(evidence.kind)} {visible(evidence.subject)}"
    return Document(title, summary, VERDICT_TONE[evidence.verdict], tuple(blocks), footer if evidence.artifacts else "")


def _figure(evidence: Evidence) -> str:
    """Return what a benchmark measured, with its interval; nothing of other records."""
    if evidence.kind != KIND:
        return ""
    try:
        item = measured_of(evidence)
    except msgspec.ValidationError:
        return ""
    return f"{interval_text(item)} {item.case.unit}" if item.summary else ""


def _head(
    record: StoredEvidence, machine: Machine | None, repeats: Mapping[str, int]
) -> tuple[tuple[str, str, str], ...]:
    evidence = record.evidence
    silent = f" ({evidence.silence})" if evidence.silence else ""
    rows = [
        ("id", record.id, ""),
        ("started", evidence.started_at, ""),
        ("took", time_text(evidence.time_ms), ""),
        ("target", evidence.gfx_target, ""),
        ("last phase", evidence.last_phase + silent if evidence.last_phase else "", ""),
        ("group", evidence.group, ""),
        ("machine", _machine_text(machine), f"--facts shows it; {evidence.machine[:12]}" if machine else ""),
        ("this run so far", _counts_text(repeats), f"identity {evidence.identity[:12]}"),
    ]
    return tuple((label, visible(value), visible(note)) for label, value, note in rows if value)


def _machine_text(machine: Machine | None) -> str:
    if machine is None:
        return ""
    gpus = [
        machine.value(f"gpu.{index}.name") or machine.value(f"gpu.{index}.gfx_target")
        for index in machine.indices("gpu")
    ]
    named = ", ".join(dict.fromkeys(str(gpu) for gpu in gpus if gpu))
    return f"{machine.name}: {named or 'no AMD GPU'}, read {machine.captured_at}"


def phases(evidence: Evidence, label: str) -> TimelineRow:
    """Lay out a run's phases; the last has the tone of what came out: where it fell silent, if it did."""
    last = len(evidence.timeline) - 1
    spans = tuple(
        Span(
            visible(span.name) + (" (known to be slow)" if span.slow else ""),
            span.begin_ms / 1000,
            span.end_ms / 1000,
            VERDICT_TONE[evidence.verdict] if number == last else Tone.INFO,
        )
        for number, span in enumerate(evidence.timeline)
    )
    silent = f", {evidence.silence}" if evidence.silence else ""
    after = f" after {visible(evidence.last_phase)}" if evidence.last_phase and evidence.verdict is Verdict.HANG else ""
    return TimelineRow(visible(label), spans, f"{evidence.verdict}{after}{silent}")


def _phase_blocks(evidence: Evidence) -> tuple[Block, ...]:
    drawn = Timeline((phases(evidence, evidence.subject),))
    marks = [[visible(span.name), visible(span.mark)] for span in evidence.timeline if span.mark]
    return (drawn, table(["phase", "began with the line"], marks)) if marks else (drawn,)


def _values(values: Mapping[str, Any]) -> tuple[Block, ...]:
    """Short values on a line each; long texts, such as tracebacks, as they are."""
    short, long = [], []
    for name, value in values.items():
        if isinstance(value, str) and ("\n" in value or len(value) > _LONG_CHARS):
            long.append(Section(visible(name), (Code(visible(value)),)))
        else:
            short.append((visible(name), visible(value_text(name, value)), ""))
    return (*((Pairs(tuple(short)),) if short else ()), *long)


def removal_document(ids: Sequence[str], *, removed: int, dry_run: bool) -> Document:
    """Lay out what was removed, or would be."""
    if not ids:
        return Document("Remove records", "No record matches: nothing to remove.", Tone.MUTED)
    if dry_run:
        summary = f"{count_text(len(ids), 'record')} would be removed. Nothing was."
    elif not removed:
        summary = "Nothing was removed."
    else:
        summary = f"{count_text(removed, 'record')} removed."
    listed = [*ids[:_LISTED], f"… and {len(ids) - _LISTED} more"] if len(ids) > _LISTED else list(ids)
    footer = "`rocmend store gc` frees the space of artifacts that only they referred to." if removed else ""
    return Document("Remove records", summary, Tone.PLAIN, (Code("\n".join(listed)),), footer)


def gc_document(report: GcReport, damage: Sequence[Damage] | None, *, dry_run: bool) -> Document:
    """Lay out what collecting garbage did, and the damage where it was looked for."""
    rows = (
        ("artifacts", str(report.artifacts), "without a record"),
        ("machine snapshots", str(report.machines), "without a record"),
        ("half-written files", str(report.partial_files), "of killed writers"),
        ("room", size_text(report.freed_bytes), "would be freed" if dry_run else "freed"),
    )
    blocks: list[Block] = [Pairs(rows)]
    what = "Nothing was removed: this would be." if dry_run else "No record was removed."
    if damage is None:
        return Document("Collect garbage", what, blocks=tuple(blocks))
    if not damage:
        return Document("Collect garbage", f"{what} Everything in the store is intact.", Tone.GOOD, tuple(blocks))
    blocks.append(
        Section("Damage", (table(["what", "problem"], [[item.subject, visible(item.problem)] for item in damage]),))
    )
    return Document("Collect garbage", f"{what} {count_text(len(damage), 'thing')} damaged.", Tone.ERROR, tuple(blocks))
