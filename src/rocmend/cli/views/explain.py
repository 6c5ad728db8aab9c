"""How the meaning of errors is laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.cli.views.entry import STATUS_TONE, remedy_blocks, source_links
from rocmend.cli.views.machine import value_text
from rocmend.cli.views.plan import steps_named
from rocmend.core.records import Remedy
from rocmend.core.signatures import Certainty
from rocmend.core.units import count_text
from rocmend.doctor.meaning import Here, Meaning, Whose
from rocmend.kb.entry import Status
from rocmend.kb.errors import Sighting
from rocmend.report.document import Block, Card, Code, Document, Pairs, Text, Tone
from rocmend.report.visible import as_markdown

MOST_SHOWN = 8
"""Meanings shown in full; the rest are named."""

_TONE = {
    Here.CONFIRMED: Tone.ERROR,
    Here.NOT_CHECKED: Tone.WARNING,
    Here.UNDECIDED: Tone.WARNING,
    Here.CONTRADICTED: Tone.INFO,
    Here.OTHER_GPU: Tone.MUTED,
}
_SURE = {
    Certainty.CERTAIN: "certain: the line says so",
    Certainty.LIKELY: "likely: the usual cause of such a line",
    Certainty.POSSIBLE: "possible: the line alone does not tell the cause",
}
_PART = {
    Certainty.LIKELY: "likely: such a line was given in part",
    Certainty.POSSIBLE: "possible: only a part of the line was given",
}
_WHOSE = {
    None: "confirmed",
    Whose.THIS: "confirmed: the line is in its kernel log",
    Whose.ANOTHER: "the line is of another machine; the kernel log of {machine} has such lines, too",
    Whose.UNKNOWN: "the kernel log of {machine} has such lines",
}
"""What a machine says that confirms an entry, by whose log the line is of."""
_MOST_FACTS = 4
_OF_MACHINE = re.compile(r"\brocmend (?:wheel choose(?: [\w.]+)?+|doctor)(?! --(?:machine|target))(?!\w)")
"""Commands that answer for a machine."""


def meanings_document(
    meanings: Sequence[Meaning],
    *,
    lines: int,
    machine: str,
    doctor: str = "rocmend doctor",
    ended: str = "",
    well: bool = False,
    near: Sequence[tuple[str, str]] = (),
) -> Document:
    """Lay out what was found.

    Args:
        meanings: What the lines mean, what matters most first.
        lines: How many lines were read.
        machine: The machine that it is explained for; empty where none was looked at.
        doctor: The command that prints the plan of that machine.
        ended: How the program that was run ended.
        well: It ended with exit status 0.
        near: Entries about the words of the text, with their titles, where no known error is in it.
    """
    blocks: list[Block] = [Text(as_markdown(ended))] if ended else []
    if not meanings:
        summary = "No error that rocmend knows is in this text."
        if near:
            summary += " Its words are those of:"
            blocks += [Card(title, Tone.INFO, "", entry_id) for entry_id, title in near]
        footer = "`rocmend kb search WORDS` looks words up, `rocmend doctor` checks this machine."
        if not well:
            footer += " Paste the first error, not the last: the lines above it often say more."
        return Document("Explanation", summary, Tone.INFO, tuple(blocks), footer)
    shown = meanings[:MOST_SHOWN]
    told: set[int] = set()
    for one in _each_once(shown):
        blocks.append(_card(one, machine, _plan_blocks(one, doctor, told)))
        told |= {step.number for step in one.steps}
    if rest := meanings[MOST_SHOWN:]:
        blocks.append(Text("Also found: " + ", ".join(f"`{one.seen.entry_id}`" for one in rest) + "."))
    if meanings[0].seen.part:
        summary = f"{count_text(len(meanings), 'known error')} of which this may be a part."
    else:
        summary = f"{count_text(len(meanings), 'known error')} in {count_text(lines, 'line')}."
    footer = "`rocmend kb show ID` prints an entry. Nothing was changed."
    if any(one.causes for one in shown):
        footer = f"`{doctor} --explain ID` says what to do about what was found on {machine}. {footer}"
    return Document("Explanation", summary, _TONE[shown[0].here], tuple(blocks), footer)


def _each_once(meanings: Sequence[Meaning]) -> list[Meaning]:
    """Leave out of later meanings the actions that an earlier one asks for already."""
    told: set[tuple[str, tuple[str, ...]]] = set()
    made = []
    for one in meanings:
        new = tuple(remedy for remedy in one.remedies if not remedy.action or _done(remedy) not in told)
        made.append(msgspec.structs.replace(one, remedies=new))
        told |= {_done(remedy) for remedy in one.remedies}
    return made


def _done(remedy: Remedy) -> tuple[str, tuple[str, ...]]:
    return remedy.action, remedy.commands


def as_asked(meaning: Meaning, options: str) -> Meaning:
    """Return a meaning whose commands name the machine or the GPU that was asked about.

    Args:
        meaning: As it was found.
        options: ``--machine strix-halo``; empty for this machine.
    """
    if not options:
        return meaning

    def named(text: str) -> str:
        return _OF_MACHINE.sub(lambda found: f"{found[0]} {options}", text)

    remedies = tuple(
        msgspec.structs.replace(one, text=named(one.text), commands=tuple(map(named, one.commands)))
        for one in meaning.remedies
    )
    return msgspec.structs.replace(meaning, remedies=remedies)


def _card(meaning: Meaning, machine: str, plan: Sequence[Block]) -> Card:
    seen = meaning.seen
    times = "" if seen.count == 1 else f", {'at least ' if seen.at_least else ''}{count_text(seen.count, 'time')}"
    rows = [] if seen.part else [("line", f"{seen.number}{times}", "")]
    rows.append(("certainty", _sure(seen), ""))
    if machine and (here := _here(meaning, machine)):
        rows.append(here)
    blocks: list[Block] = [Code(seen.line)]
    said = meaning.here is not Here.CONFIRMED and bool(seen.meaning)
    if said:
        rows.append(("entry", meaning.title, ""))
    elif seen.meaning:
        blocks.append(Text(as_markdown(seen.meaning)))
    blocks.append(Pairs(tuple(rows)))
    blocks += [
        Text(f"**Found on {machine}:** {as_markdown(cause.title)} (`{cause.entry_id}`)") for cause in meaning.causes
    ]
    blocks += plan
    blocks += remedy_blocks(meaning.remedies)
    if meaning.here is Here.OTHER_GPU:
        blocks.append(Text(f"What helps against it is for other GPUs; `rocmend kb show {seen.entry_id}` prints it."))
    details: list[Block] = [Text(meaning.text), source_links(meaning.sources)]
    if meaning.see:
        details.append(Text("See also " + ", ".join(f"`{name}`" for name in meaning.see) + "."))
    label = "" if meaning.status is Status.ACTIVE else meaning.status.value
    tone = _TONE[meaning.here] if meaning.status is Status.ACTIVE else STATUS_TONE[meaning.status]
    return Card(
        seen.meaning if said else meaning.title,
        tone,
        label,
        seen.entry_id,
        tuple(blocks),
        tuple(details),
        "Why, and sources",
    )


def _sure(seen: Sighting) -> str:
    """Say how sure it is that such a line means the entry."""
    if seen.mention:
        return "possible: the line names the error, as a script, a text or a report does"
    text = (_PART if seen.part else _SURE)[seen.certainty]
    return text.replace("the line says so", f"line {seen.surest} says so") if seen.surest else text


def _plan_blocks(meaning: Meaning, doctor: str, told: set[int]) -> list[Block]:
    """Lay out the steps of doctor's plan, those that were told before by their numbers; a single one with commands."""
    steps = meaning.steps
    if not steps:
        return []
    place = f"**Do** → {steps_named([step.number for step in steps])} of `{doctor}`"
    new = [step for step in steps if step.number not in told]
    if not new:
        return [Text(f"{place}, as above.")]
    lines = "\n".join(f"- step {step.number}: {as_markdown(step.title)}" for step in new)
    blocks: list[Block] = [Text(f"{place}:\n\n{lines}")]
    if len(steps) == 1 and steps[0].commands:
        blocks.append(Code("\n".join(steps[0].commands), "bash"))
    return blocks


def _here(meaning: Meaning, machine: str) -> tuple[str, str, str] | None:
    """Return what the machine says of it."""
    facts = "; ".join(f"{fact.key} = {value_text(fact.key, fact.value)}" for fact in meaning.evidence[:_MOST_FACTS])
    where = f"on {machine}"
    if meaning.here is Here.CONFIRMED:
        return where, _WHOSE[meaning.whose].format(machine=machine), facts
    if meaning.here is Here.CONTRADICTED:
        return where, "not confirmed", facts
    if meaning.here is Here.OTHER_GPU:
        return where, "it is about other GPUs", facts
    if meaning.here is Here.UNDECIDED:
        wanted = ", ".join(gap.key for gap in meaning.missing[:_MOST_FACTS])
        return where, "cannot be decided", f"not known: {wanted}" if wanted else ""
    return None
