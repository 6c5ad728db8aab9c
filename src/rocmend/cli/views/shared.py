"""How evidence that others sent is laid out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rocmend.core.units import count_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Cell, Document, Pairs, Section, Text, Tone, table
from rocmend.store.exchange import Received
from rocmend.store.proven import Proof, Proven

_MOST_REASONS = 20
_FACTS = ("os.name", "kernel.release", "cpu.model", "rocm.version", "torch.version")


def archive_document(received: Received) -> Document:
    """Lay out an archive: its machines, what its evidence says, and what in it can't be read."""
    records = received.records
    verdicts = Counter(record.evidence.verdict.value for record in records)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    summary = f"{count_text(len(records), 'record')}{f': {told}' if told else ''}. Written by rocmend "
    summary += (
        f"{received.manifest.rocmend_version}, machine read on {received.manifest.captured_at or 'an unknown day'}."
    )
    blocks: list[Block] = []
    for machine in received.machines.values():
        names = [str(machine.value(f"gpu.{index}.name", "")) for index in machine.indices("gpu")]
        targets = [str(machine.value(f"gpu.{index}.gfx_target", "")) for index in machine.indices("gpu")]
        gpus = ", ".join(f"{name} ({target})" for name, target in zip(names, targets, strict=True)) or "none"
        facts = [(key, str(machine.value(key)), "") for key in _FACTS if machine.value(key) is not None]
        blocks.append(Section("A machine", (Pairs((("GPU", gpus, ""), *facts)),)))
    groups: dict[str, list[str]] = defaultdict(list)
    for record in records:
        groups[record.evidence.group].append(record.evidence.verdict.value)
    if groups:
        rows = [[group or "no run", str(len(some)), _counted(some)] for group, some in groups.items()]
        blocks.append(Section("Runs", (table(["run", "records", "verdicts"], rows),)))
    failed = [record for record in records if record.evidence.verdict not in {Verdict.PASS, Verdict.SKIPPED}]
    if failed:
        lines = [
            [Cell(one.evidence.subject), Cell(one.evidence.verdict.value, Tone.ERROR), Cell(one.evidence.reason)]
            for one in failed[:_MOST_REASONS]
        ]
        more = [Text(f"And {len(failed) - _MOST_REASONS} more.", Tone.MUTED)] if len(failed) > _MOST_REASONS else []
        blocks.append(Section("What did not pass", (table(["subject", "verdict", "why"], lines), *more)))
    if received.refused:
        refused = tuple(map(Text, received.refused[:_MOST_REASONS]))
        blocks.append(Section("Records that can't be read", refused))
    parts = tuple((name, what, "") for name, what in received.manifest.parts.items())
    if parts:
        blocks.append(Section("Files", (Pairs(parts),)))
    footer = "`rocmend share import` keeps its evidence; `rocmend doctor --machine` reads its capture, unpacked."
    return Document(received.name, summary, Tone.WARNING if received.refused else Tone.PLAIN, tuple(blocks), footer)


def _counted(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common())


def import_document(rows: Sequence[Mapping[str, Any]]) -> Document:
    """Lay out what importing did."""
    added = sum(row.get("added", 0) for row in rows)
    problems = [row for row in rows if "problem" in row]
    summary = f"{count_text(added, 'record')} kept of {count_text(len(rows), 'archive')}."
    if problems:
        summary += f" {count_text(len(problems), 'archive')} could not be read."
    lines = [[Cell(row["file"].name), *_outcome(row)] for row in rows]
    footer = "`rocmend store ls --groups` lists the runs, `rocmend share matrix` what they prove."
    tone = Tone.WARNING if problems or any(row.get("refused") for row in rows) else Tone.GOOD
    return Document("Evidence of others", summary, tone, (table(["archive", "kept", "note"], lines),), footer)


def _outcome(row: Mapping[str, Any]) -> tuple[Cell, Cell]:
    if "problem" in row:
        return Cell("none", Tone.ERROR), Cell(row["problem"])
    notes = [f"{row['known']} kept before"] if row["known"] else []
    notes += [f"{count_text(row['own'], 'record')} of this store itself: not added"] if row["own"] else []
    notes += (
        [f"{count_text(len(row['refused']), 'record')} can't be read: {row['refused'][0]}"] if row["refused"] else []
    )
    return Cell(str(row["added"])), Cell("; ".join(notes), Tone.WARNING if row["refused"] else Tone.PLAIN)


def matrix_document(found: Proven) -> Document:
    """Lay out the matrix; a table for every few targets where there are many."""
    if not found.subjects:
        text = "There is no evidence of that kind yet: `rocmend probe` and `rocmend bench` make some."
        return Document("Who has proven what", text, Tone.PLAIN)
    summary = (
        f"{count_text(found.records, 'record')} of {count_text(found.machines, 'machine')} on "
        f"{count_text(len(found.targets), 'target')}. A cell says on how many machines it passed, and what came out on "
        "the others."
    )
    rows = [
        [Cell(subject), *(_proof(row.get(target)) for target in found.targets)]
        for subject, row in found.subjects.items()
    ]
    heat = table(["", *found.targets], rows, heat=True)
    return Document("Who has proven what", summary, Tone.PLAIN, (heat,))


def _proof(proof: Proof | None) -> Cell:
    if proof is None:
        return Cell("", Tone.MUTED)
    others = [f"{count} {verdict}" for verdict, count in proof.verdicts.items() if verdict != Verdict.PASS.value]
    text = ", ".join([f"{proof.passed} of {proof.machines}", *others]) if others else f"{proof.passed} passed"
    return Cell(text, Tone.GOOD if not others else Tone.WARNING if proof.passed else Tone.ERROR)
