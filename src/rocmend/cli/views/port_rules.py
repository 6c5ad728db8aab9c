"""How the rules of a port are laid out."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rocmend.cli.views.diagnosis import TONE
from rocmend.core.units import count_text
from rocmend.port.records import Language
from rocmend.port.rule import Case, Rule
from rocmend.report.document import Block, Cell, Code, Document, Link, Links, Section, Text, Tone, table

__all__ = ["rule_document", "rules_document"]

_NAMES = {Language.CUDA: "CUDA C++", Language.PYTHON: "Python", Language.TEXT: "Builds, dependencies and settings"}
_FENCE = {Language.CUDA: "cpp", Language.PYTHON: "python", Language.TEXT: ""}
_HEADING = re.compile(
    r"^(?:#+ *)?(What it does|Why it matters|Example|Use instead|Fix safety|References):?\s*$", re.MULTILINE
)


def rules_document(known: Sequence[Rule]) -> Document:
    """Lay out all rules, by what they read."""
    blocks: list[Block] = []
    for language, name in _NAMES.items():
        rows = [
            [Cell(rule.id), Cell(rule.severity.value, TONE[rule.severity]), Cell(rule.outcome.value), Cell(rule.title)]
            for rule in known
            if rule.language is language
        ]
        blocks.append(Section(name, (table(["id", "severity", "done", "construct"], rows),)))
    return Document("Rules of a port", f"{count_text(len(known), 'rule')}.", Tone.PLAIN, tuple(blocks), _FOOTER)


_FOOTER = "`rocmend port --explain ID` explains one."


def rule_document(rule: Rule) -> Document:
    """Lay out one rule: its page, its examples, its sources."""
    blocks: list[Block] = [*page_sections(rule), *_examples(rule)]
    if rule.sources:
        links = tuple(Link("", one) if one.startswith("http") else Link(one) for one in rule.sources)
        blocks.append(Links("Sources", links))
    done = {"auto": "rewritten", "suggest": "suggested", "manual": "by hand", "note": "a note"}[rule.outcome.value]
    return Document(
        f"{rule.id}: {rule.title}", f"{rule.severity.value.capitalize()}; {done}.", TONE[rule.severity], tuple(blocks)
    )


def page_sections(rule: Rule) -> list[Block]:
    """Return the parts of a rule's page under their headings."""
    pieces = _HEADING.split(rule.page.strip())
    blocks: list[Block] = [Text(pieces[0].strip())] if pieces[0].strip() else []
    for heading, text in zip(pieces[1::2], pieces[2::2], strict=True):
        body = textwrap.dedent(re.sub(r"\A-{3,}\n", "", text.lstrip("\n"))).strip()
        if body and heading != "References":
            blocks.append(Section(heading, (Text(body),)))
    return blocks


def _examples(rule: Rule) -> list[Block]:
    shown = [case for case in rule.invalid if isinstance(case, Case)][:2]
    blocks: list[Block] = []
    for case in shown:
        blocks.append(Code(case.before.rstrip("\n"), _FENCE[rule.language]))
        if case.after is None:
            blocks.append(Text("is reported, and left to a person."))
        else:
            blocks += [Text("becomes"), Code(case.after.rstrip("\n"), _FENCE[rule.language])]
    return [Section("Examples", tuple(blocks))] if blocks else []
