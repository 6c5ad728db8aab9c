"""How a knowledge entry is laid out."""

from __future__ import annotations

from rocmend.core.records import Remedy, Source
from rocmend.doctor.explain import Explanation
from rocmend.kb.entry import Caution, Effect, Entry, Scope, Status
from rocmend.kb.general import headline
from rocmend.kb.load import Knowledge
from rocmend.report.document import Block, Cell, Code, Document, Link, Links, Pairs, Section, Text, Tone, table

STATUS_TONE = {
    Status.ACTIVE: Tone.GOOD,
    Status.FIXED_IN: Tone.INFO,
    Status.SUPERSEDED: Tone.MUTED,
    Status.REFUTED: Tone.MUTED,
    Status.DISPUTED: Tone.WARNING,
    Status.ARCHIVED: Tone.MUTED,
}


def source_links(sources: tuple[Source, ...]) -> Links:
    """Lay out who says so."""
    made = tuple(Link(_source_text(source), source.url) for source in sources)
    return Links("Source" if len(made) == 1 else "Sources", made)


def _source_text(source: Source) -> str:
    """Return who says so and when, and what it said when it was last read."""
    said = f"{source.title} ({source.date})" if source.date else source.title
    return f"{said}; read {source.read}: {source.said}" if source.read else said


def remedy_blocks(remedies: tuple[Remedy, ...], *, conditions: bool = False) -> tuple[Block, ...]:
    """Lay out what can be done, with its risk, how to check it and how to undo it.

    Args:
        remedies: What can be done.
        conditions: Whether to say where each is for: of no machine in particular.
    """
    blocks: list[Block] = []
    for remedy in remedies:
        needs = f" Needs {', '.join(remedy.needs)}." if remedy.needs else ""
        note = f": {remedy.risk_note}" if remedy.risk_note else "."
        risk = f" Risk: {remedy.risk}{note}" if remedy.risk != "none" or remedy.risk_note else ""
        blocks.append(Text(f"**{remedy.relation}:** {remedy.text}{needs}{risk}"))
        if conditions and remedy.when:
            blocks.append(Text(f"Where `{remedy.when}`", Tone.MUTED))
        if remedy.commands:
            blocks.append(Code("\n".join(remedy.commands), "bash"))
        if remedy.check:
            expected = f" (expected: {remedy.expect})" if remedy.expect else ""
            blocks += [Text(f"Then check{expected}:"), Code(remedy.check, "bash")]
        elif remedy.expect:
            blocks.append(Text(f"Then check: {remedy.expect}"))
        if remedy.undo:
            blocks.append(Text(f"Undo: {remedy.undo}", Tone.MUTED))
    return tuple(blocks)


def scope_text(scope: Scope) -> str:
    """Return the scope in a line."""
    parts = [
        ", ".join(scope.gfx),
        f"ROCm {scope.rocm}" if scope.rocm else "",
        f"Linux {scope.kernel}" if scope.kernel else "",
        ", ".join(f"{name} {versions}" for name, versions in scope.package.items()),
        f"for {', '.join(scope.workload)}" if scope.workload else "",
        ", ".join(scope.os),
        scope.note,
    ]
    return "; ".join(part for part in parts if part) or "everywhere"


def entry_document(explanation: Explanation, knowledge: Knowledge) -> Document:
    """Lay out everything an entry says, and whether it applies to a machine."""
    entry = explanation.entry
    pairs = (
        *_here(explanation),
        ("id", entry.id, ""),
        ("status", _status(entry), ""),
        ("kind", entry.kind.value, ""),
        ("holds for", scope_text(entry.scope), ""),
        ("claimed", entry.claimed or "not dated", ""),
        ("reviewed", str(entry.reviewed), f"to be checked again by {entry.review_by}"),
    )
    blocks: list[Block] = [Pairs(pairs), Text(entry.body)]
    here = any(match.applies for match in explanation.matches)
    if entry.effect:
        blocks.append(Section("Figures", (table(["what", "value", "basis", "condition"], _effects(entry.effect)),)))
    if entry.remedy:
        blocks.append(Section("What to do", remedy_blocks(entry.remedy, conditions=not here)))
    settings = [_setting(entry, number) for number in range(len(entry.setting))]
    if settings:
        blocks.append(Section("Settings", (table(["variable", "value", "for", "why"], settings),)))
    if entry.install:
        made: list[Block] = []
        for install in entry.install:
            made += [Text(f"**{install.package}** ({install.channel}): {install.why}".strip())]
            made += [Code(install.command, "bash")]
            made += [Text(f"**Needs** {install.needs}.")] if install.needs else []
            made += [Text(f"**Caution:** {caution_text(caution)}") for caution in install.caution]
        blocks.append(Section("Install", tuple(made)))
    if entry.cell:
        rows = [[cell.table, cell.row, cell.target, cell.state, cell.note] for cell in entry.cell]
        blocks.append(Section("Compatibility", (table(["table", "row", "target", "state", "note"], rows),)))
    if entry.when:
        blocks.append(Section("Recognised by", (Code(entry.when),)))
    links = _links(entry, knowledge)
    if links:
        blocks.append(Section("Linked entries", (table(["entry", "title", "link"], links),)))
    blocks.append(source_links(entry.source))
    tone = Tone.PLAIN if entry.status is Status.ACTIVE else STATUS_TONE[entry.status]
    return Document(entry.title, tone=tone, blocks=tuple(blocks))


def _here(explanation: Explanation) -> tuple[tuple[str, str, str], ...]:
    """Return a line that says whether the entry applies to the machine that was asked about."""
    if not explanation.machine or not explanation.entry.when:
        return ()
    outcomes = [match.applies for match in explanation.matches]
    missing = dict.fromkeys(gap.key for match in explanation.matches for gap in match.missing)
    if any(outcomes):
        subjects = ", ".join(match.subject for match in explanation.matches if match.applies and match.gpu is not None)
        return ((f"on {explanation.machine}", "applies", subjects),)
    if None in outcomes:
        return (
            (f"on {explanation.machine}", "cannot be decided", f"not known: {', '.join(missing)}" if missing else ""),
        )
    return ((f"on {explanation.machine}", "does not apply", ""),)


def caution_text(caution: Caution) -> str:
    """Write a caution with whom it concerns."""
    scope = ", ".join(caution.gfx)
    condition = f"where `{caution.when}`" if caution.when else ""
    concerns = "; ".join(part for part in (scope, condition) if part)
    return f"{caution.text} ({concerns})" if concerns else caution.text


def _status(entry: Entry) -> str:
    more = {
        Status.FIXED_IN: ", ".join(entry.fixed_in),
        Status.SUPERSEDED: f"by {', '.join(entry.links.superseded_by)}",
        Status.REFUTED: f"by {', '.join(entry.links.refuted_by)}",
    }.get(entry.status, "")
    return f"{entry.status} {more}".strip()


def _effects(effects: tuple[Effect, ...]) -> list[list[str]]:
    return [
        [
            effect.what,
            "" if effect.value is None else f"{effect.value:.10g} {effect.unit}".strip(),
            effect.basis,
            effect.condition,
        ]
        for effect in effects
    ]


def _setting(entry: Entry, number: int) -> list[str]:
    setting = entry.setting[number]
    value = "(unset)" if setting.unset else setting.value + (":…" if setting.prepend else "")
    note = f"{setting.why} (worth measuring)" if setting.optional else setting.why
    return [setting.name, value, ", ".join(setting.workload) or "all", note]


def _links(entry: Entry, knowledge: Knowledge) -> list[list[str | Cell]]:
    kinds = {
        "contradicts": entry.links.contradicts,
        "resolved by": entry.links.resolved_by,
        "superseded by": entry.links.superseded_by,
        "refuted by": entry.links.refuted_by,
        "see": entry.links.see,
    }
    rows: list[list[str | Cell]] = []
    for kind, ids in kinds.items():
        for other in ids:
            found = knowledge.entries.get(other)
            rows.append([other, headline(found) if found else Cell("no such entry", Tone.ERROR), kind])
    return rows
