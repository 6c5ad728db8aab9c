"""How runs of probes, and what changed between two of them, are laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rocmend.core.evidence import Evidence
from rocmend.core.units import count_text, size_text
from rocmend.core.verdict import Verdict
from rocmend.probe.diff import Diff, Side
from rocmend.probe.docs import ProbeRow
from rocmend.probe.matrix import Cell, Matrix, matrix_of, rank
from rocmend.probe.records import ProbeRun, Subject
from rocmend.report.document import Block, Card, Code, Document, Pairs, Section, Table, Text, Timeline, Tone, table
from rocmend.report.document import Cell as TableCell
from rocmend.report.junit import Case as JunitCase

TONE = {
    Verdict.PASS: Tone.GOOD,
    Verdict.SKIPPED: Tone.MUTED,
    Verdict.UNSUPPORTED: Tone.WARNING,
    Verdict.SLOW: Tone.WARNING,
    Verdict.INFRA: Tone.WARNING,
}

CHANGE_TONE = {
    "broken": Tone.ERROR,
    "verdict": Tone.WARNING,
    "fixed": Tone.GOOD,
    "error": Tone.WARNING,
    "time": Tone.INFO,
}

MOST_NAMED = 12
"""Subjects named in a card before the rest is counted."""


def tone_of(verdict: Verdict) -> Tone:
    """Return the tone of a verdict."""
    return TONE.get(verdict, Tone.ERROR)


def run_document(run: ProbeRun) -> Document:
    """Lay out a run: the answer, the matrix, and what went wrong."""
    summary, tone = run_summary(run)
    footer = f"Run {run.group}. `rocmend probe diff {run.group} last` compares it with a later one."
    return Document(f"Probes of {run.subject.device_name}", summary, tone, tuple(run_blocks(run)), footer)


def run_summary(run: ProbeRun) -> tuple[str, Tone]:
    """Return the answer in a sentence or two, and its tone."""
    matrix = matrix_of(run.results)
    passed, skipped = matrix.verdicts.get("pass", 0), matrix.verdicts.get("skipped", 0)
    ran = len(run.results) - skipped
    where = "the CPU" if run.subject.gfx_target == "cpu" else f"{run.subject.device_name} ({run.subject.gfx_target})"
    text = f"{passed} of {count_text(ran, 'probe')} passed on {where}"
    if skipped:
        text += f", {skipped} did not apply"
    text += "."
    if run.order_dependent:
        text += f" {len(run.order_dependent)} of them failed only after other operations."
    if matrix.broken:
        text += f" Something is wrong with: {', '.join(matrix.broken)}."
    if run.subject.gfx_target == "cpu":
        text += " No GPU was probed: this shows that torch and the probes work, and nothing about a GPU."
    if run.quarantine:
        text += f" The run was stopped, with {count_text(len(run.not_run), 'probe')} to go: {run.quarantine}."
    elif run.not_run:
        text += f" {count_text(len(run.not_run), 'probe')} not run."
    worst = min((result.verdict for result in run.failed), key=rank, default=Verdict.PASS)
    if run.quarantine:
        return text, Tone.ERROR
    return text, Tone.WARNING if worst is Verdict.PASS and not run.clean else tone_of(worst)


def run_blocks(run: ProbeRun) -> list[Block]:
    """Lay out everything below the answer; a larger report puts it into a section of its own."""
    groups = grouped(run.failed)
    blocks: list[Block] = [Pairs(_subject_rows(run.subject)), matrix_table(matrix_of(run.results), groups)]
    blocks += [failure_card(alike) for alike in groups]
    if run.order_dependent:
        blocks.append(order_card(run.order_dependent))
    blocks += [Text(f"{_escaped(note)}.", Tone.WARNING) for note in run.notes]
    if run.problems:
        lines = "\n".join(f"- {problem}" for problem in run.problems)
        blocks.append(Section("Probes that could not be loaded", (Text(lines),)))
    return blocks


def _subject_rows(subject: Subject) -> tuple[tuple[str, str, str], ...]:
    versions = ", ".join(f"{name} {version}" for name, version in subject.versions.items())
    return (("device", f"{subject.device_name} ({subject.device})", ""), ("software", versions, subject.python))


def matrix_table(matrix: Matrix, groups: Sequence[Sequence[Evidence]]) -> Table:
    """Lay out what works and what does not: families against dtypes; what failed leads to the card that says how.

    Args:
        matrix: The verdicts.
        groups: The failures, in the groups that have a card.
    """
    refs: dict[tuple[str, str], str] = {}
    for alike in groups:
        for result in alike:
            place = (str(result.detail.get("family", "")), str(result.detail.get("dtype", "")))
            refs.setdefault(place, _ref(alike))
    rows: list[list[str | TableCell]] = [
        [row.family, *(_cell(row.cells.get(dtype), refs.get((row.family, dtype), "")) for dtype in matrix.dtypes)]
        for row in sorted(matrix.rows, key=lambda row: (not row.failed, row.family))
    ]
    caption = "The worst verdict of each family, and how many of its probes passed"
    return table(["", *matrix.dtypes], rows, caption, heat=True)


def _ref(alike: Sequence[Evidence]) -> str:
    return alike[0].subject if len(alike) == 1 else str(alike[0].detail.get("family", ""))


def _cell(cell: Cell | None, ref: str) -> TableCell:
    if cell is None:
        return TableCell("", Tone.MUTED)
    if not cell.count:
        return TableCell("skipped", Tone.MUTED)
    return TableCell(f"{cell.worst.value} {cell.passed}/{cell.count}", tone_of(cell.worst), ref)


def grouped(failed: Sequence[Evidence]) -> list[list[Evidence]]:
    """Return failures in groups that have family, verdict and (figures aside) reason in common, the gravest first."""
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for result in failed:
        alike = re.sub(r"[-+]?\d[\d.e+-]*|\[.*?\]", "#", result.reason)
        groups.setdefault((str(result.detail.get("family")), result.verdict.value, alike), []).append(result)
    return sorted(groups.values(), key=lambda group: (rank(group[0].verdict), group[0].subject))


def failure_card(alike: Sequence[Evidence]) -> Card:
    """Lay out failures that have their reason in common."""
    first = alike[0]
    names = [result.subject for result in alike]
    listed = ", ".join(f"`{name}`" for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        listed += f" and {len(names) - MOST_NAMED} more"
    blocks: list[Block] = [Text(_escaped(first.reason) or "No reason was given.")]
    if len(names) > 1:
        blocks.append(Text(f"The same for {listed}.", Tone.MUTED))
    entries = dict.fromkeys(name for result in alike for name in result.detail.get("knowledge", ()))
    if entries:
        known = ", ".join(f"`{name}`" for name in entries)
        blocks.append(Text(f"What is known about it: {known} (`rocmend kb show ID`).", Tone.ADVICE))
    title = str(first.detail.get("title") or first.subject)
    heading = f"{title} ({first.detail.get('dtype', '')})" if len(alike) == 1 else f"{title}, and {len(alike) - 1} more"
    details = (*_phases(first), *_figures(first), *_trace(first))
    label = first.verdict.value
    return Card(
        heading, tone_of(first.verdict), label, _ref(alike), tuple(blocks), details, "Phases, figures and trace"
    )


def _phases(result: Evidence) -> list[Block]:
    if not result.timeline:
        return []
    from rocmend.cli.views.store import phases

    return [Timeline((phases(result, result.subject),), "Phases")]


def order_card(results: Sequence[Evidence]) -> Card:
    """Lay out what passed in a process of its own and failed in one that other probes had run in."""
    lines = "\n".join(f"- `{result.subject}`: {_escaped(result.reason)}" for result in results)
    advice = "It may depend on what ran before, or on chance. `rocmend probe --isolate --select ID` tries it alone."
    blocks = (Text(lines), Text(advice, Tone.ADVICE))
    return Card("Failed only after other operations", Tone.WARNING, "order", "", blocks)


def _figures(result: Evidence) -> list[Block]:
    detail, comparison = result.detail, result.detail.get("comparison") or {}
    rows: list[tuple[str, str, str]] = []
    if comparison:
        rows.append(
            (
                "largest error",
                f"{comparison.get('max_rel_error', 0):.3g}",
                f"{comparison.get('tolerance', 0):.3g} allowed",
            )
        )
    rows += [
        (label, f"{detail[name]:.3f} ms", "")
        for name, label in (("compile_ms", "compiling"), ("first_ms", "first run"), ("steady_ms", "steady run"))
        if name in detail
    ]
    if "peak_memory_bytes" in detail:
        rows.append(("most memory", size_text(detail["peak_memory_bytes"]), ""))
    if result.last_phase:
        rows.append(("last phase", result.last_phase, result.silence.value if result.silence else ""))
    rows += [("kernel log", line, "") for line in detail.get("dmesg_lines", ())]
    return [Pairs(tuple(rows))] if rows else []


def _trace(result: Evidence) -> list[Block]:
    trace = str(result.detail.get("trace", ""))
    return [Code(trace, "python")] if trace else []


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[<>#|])", r"\\\1", text)


def junit_case(result: Evidence) -> JunitCase:
    """Return a result as a case of a JUnit suite."""
    family, trace = str(result.detail.get("family", "other")), str(result.detail.get("trace", ""))
    message = f"{result.reason}\n{trace}" if trace else result.reason
    return JunitCase(result.subject, f"probe.{family}", result.time_ms / 1000, result.verdict, message)


def list_document(rows: Sequence[ProbeRow]) -> Document:
    """Lay out the catalogue."""
    listed = [
        [row.id, row.family, row.title, " ".join(row.dtypes), " ".join(row.needs), "yes" if row.smoke else ""]
        for row in rows
    ]
    made = table(["probe", "family", "what it does", "dtypes", "needs", "smoke"], listed)
    families = len({row.family for row in rows})
    runs = sum(len(row.dtypes) for row in rows)
    summary = (
        f"{count_text(len(rows), 'probe')} in {count_text(families, 'family', 'families')}, {count_text(runs, 'run')}."
    )
    return Document("Probes", summary, Tone.PLAIN, (made,), "`rocmend probe --select WHAT` runs some of them.")


def diff_document(found: Diff) -> Document:
    """Lay out what changed between two runs."""
    sides = Pairs((_side_row("before", found.before), _side_row("after", found.after)))
    rows: list[list[str | TableCell]] = [
        [
            TableCell(change.subject),
            TableCell(change.kind, CHANGE_TONE[change.kind]),
            TableCell(change.before.value, tone_of(change.before)),
            TableCell(change.after.value, tone_of(change.after)),
            _from_to(change.error_before, change.error_after, ".2g"),
            _from_to(change.time_before_ms, change.time_after_ms, ".3g"),
            f"{change.time_ratio:.2f}x" if change.time_ratio else "",
            change.reason,
        ]
        for change in found.changes
    ]
    blocks: list[Block] = [sides]
    if rows:
        blocks.append(table(["probe", "change", "before", "after", "error", "steady ms", "time", "why"], rows))
    for label, names in (("Only before", found.only_before), ("Only after", found.only_after)):
        if names:
            blocks.append(Text(f"{label}: {', '.join(f'`{name}`' for name in names)}.", Tone.MUTED))
    counts = {kind: sum(change.kind == kind for change in found.changes) for kind in CHANGE_TONE}
    said = [f"{count} {kind}" for kind, count in counts.items() if count]
    summary = f"{', '.join(said) or 'Nothing changed'}; {found.same} the same."
    tone = next((CHANGE_TONE[kind] for kind in CHANGE_TONE if counts[kind]), Tone.GOOD)
    return Document(f"From {found.before.group} to {found.after.group}", summary, tone, tuple(blocks))


def _side_row(label: str, side: Side) -> tuple[str, str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in side.versions.items())
    return label, f"{side.device_name} ({side.gfx_target}), {count_text(side.count, 'result')}", versions


def _from_to(before: float | None, after: float | None, form: str) -> str:
    if before is None and after is None:
        return ""
    return " → ".join("?" if value is None else format(value, form) for value in (before, after))
