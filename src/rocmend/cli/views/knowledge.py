"""How lists and tables of knowledge entries are laid out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten

from rocmend.cli.views.entry import STATUS_TONE, source_links
from rocmend.core.units import count_text
from rocmend.kb.entry import Entry, Status
from rocmend.kb.general import advice, headline
from rocmend.kb.lint import LintProblem
from rocmend.kb.matrix import Matrix, MatrixCell
from rocmend.kb.search import Hit
from rocmend.kb.sources import Citation
from rocmend.report.document import Block, Card, Cell, Document, Links, Section, Text, Tone, table
from rocmend.report.visible import as_markdown

_MAX_COLUMNS = 5
_ADVICE_CHARS = 76
"""A line of a terminal with 80 columns, indented."""
_STATE_TONE = {
    "full": Tone.GOOD,
    "preview": Tone.INFO,
    "partial": Tone.WARNING,
    "experimental": Tone.WARNING,
    "override": Tone.WARNING,
    "none": Tone.ERROR,
}


def _with_status(entry: Entry) -> str:
    """Return an entry's title, with its status in words where it does not simply hold."""
    notes = {
        Status.ACTIVE: "",
        Status.DISPUTED: "disputed: sources contradict each other",
        Status.FIXED_IN: f"fixed in {', '.join(entry.fixed_in)}",
    }
    note = notes.get(entry.status, entry.status.value)
    return f"{headline(entry)} ({note})" if note else headline(entry)


def hit_card(entry: Entry) -> Card:
    """Lay out an entry in short: its title, and a line of what to do."""
    told = Text(shorten(advice(entry), _ADVICE_CHARS, placeholder=" …"))
    return Card(_with_status(entry), STATUS_TONE[entry.status], ref=entry.id, blocks=(told,))


def hits_document(query: str, hits: Sequence[Hit], total: int) -> Document:
    """Lay out what a search found: the best of so many hits."""
    if not hits:
        summary = "No entry is about this. Try other words, such as a symptom or a package."
        return Document(f"Search: {query}", summary, Tone.WARNING)
    cards = tuple(hit_card(hit.entry) for hit in hits)
    footer = "`rocmend kb show ID` prints an entry: what to do, why, and who says so."
    summary = count_text(total, "entry", "entries")
    if len(hits) < total:
        summary = f"The best {len(hits)} of {summary}; --limit shows more."
    return Document(f"Search: {query}", summary, blocks=cards, footer=footer)


def matrix_document(matrix: Matrix, targets: Sequence[str] = ()) -> Document:
    """Lay out a compatibility table, a part for each generation, with the notes where only some targets are asked for.

    Claims that contradict each other are marked; those that no longer stand are left out.
    """
    wanted = [target for target in matrix.targets if not targets or target in targets]
    generations = {target: re.sub(r"[0-9a-f]{2}$", "", target.removesuffix("-generic")) for target in wanted}
    sections = []
    for generation in dict.fromkeys(generations.values()):
        columns = [target for target in wanted if generations[target] == generation]
        for start in range(0, len(columns), _MAX_COLUMNS):
            part = _matrix_part(matrix, columns[start : start + _MAX_COLUMNS], with_notes=bool(targets))
            sections.append(Section(", ".join(columns[start : start + _MAX_COLUMNS]), part))
    footer = (
        "\\* entries contradict each other; `--json` has every claim with its sources, `rocmend kb show ID` the entry."
    )
    return Document(f"{matrix.table} by gfx target", blocks=tuple(sections), footer=footer)


def _matrix_part(matrix: Matrix, columns: Sequence[str], *, with_notes: bool) -> tuple[Block, ...]:
    rows: list[list[str | Cell]] = []
    notes: list[Text] = []
    for row in matrix.rows:
        cells = [matrix.cell(row, target) for target in columns]
        if not any(cell and any(claim.stands for claim in cell.claims) for cell in cells):
            continue
        rows.append([row, *(_cell(cell) for cell in cells)])
        for target, cell in zip(columns, cells, strict=True):
            notes += _notes(row, target, cell)
    grid = table([matrix.table, *columns], rows, heat=True)
    return (grid, Section("Notes", tuple(notes))) if with_notes and notes else (grid,)


def _cell(cell: MatrixCell | None) -> Cell:
    standing = [claim for claim in cell.claims if claim.stands] if cell else []
    if not standing:
        return Cell("", Tone.MUTED)
    states = list(dict.fromkeys(claim.state for claim in standing))
    mark = " *" if cell and cell.contradictory else ""
    return Cell(" / ".join(states) + mark, _STATE_TONE.get(states[0], Tone.PLAIN))


def _notes(row: str, target: str, cell: MatrixCell | None) -> list[Text]:
    claims = [claim for claim in cell.claims if claim.stands and claim.note] if cell else []
    return [Text(as_markdown(f"{row}, {target}: {claim.note} (`{claim.entry_id}`)")) for claim in claims]


def sources_document(citations: Sequence[Citation]) -> Document:
    """Lay out the sources."""
    listed = tuple(
        Links(count_text(len(citation.entries), "entry", "entries"), source_links((citation.source,)).links)
        for citation in citations
    )
    footer = "`--json` names the entries that cite each source."
    return Document(count_text(len(citations), "source"), blocks=(Section("By address", listed),), footer=footer)


def lint_document(problems: Sequence[LintProblem], checked: int) -> Document:
    """Lay out what is wrong with entries."""
    if not problems:
        return Document("Knowledge lint", f"{count_text(checked, 'entry', 'entries')}, no problems.", Tone.GOOD)
    lines = [
        Text(
            as_markdown(
                f"{Path(problem.path).name}{f':{problem.line}' if problem.line else ''}: "
                f"{problem.code} {'warning: ' if problem.warning else ''}{problem.message}"
            )
        )
        for problem in problems
    ]
    errors = sum(not problem.warning for problem in problems)
    due = len(problems) - errors
    found = f"{count_text(errors, 'problem')} in {count_text(checked, 'entry', 'entries')}"
    found += f"; {count_text(due, 'review')} due" if due else ""
    return Document("Knowledge lint", found, Tone.ERROR if errors else Tone.WARNING, tuple(lines))
