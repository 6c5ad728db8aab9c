"""How a port is laid out: what the project is, what was found, what is done about it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rocmend.cli.porting import Ported, pending, shown_issues, unread
from rocmend.cli.views.diagnosis import TONE
from rocmend.cli.views.port_groups import group_sections, sentences
from rocmend.cli.views.port_project import project_blocks
from rocmend.core.units import count_text
from rocmend.port.plan import LeftAlone
from rocmend.port.records import Analysis, FileReport, Issue, Outcome
from rocmend.port.undo import Undone
from rocmend.report.document import Block, Card, Cell, Code, Document, Section, Text, Tone, table
from rocmend.report.visible import as_code, as_markdown

__all__ = [
    "findings_blocks",
    "issues_table",
    "not_in_the_patch",
    "port_document",
    "port_verdict",
    "project_name",
    "undone_document",
]

_ALL = sys.maxsize
_SHOWN_UNREAD = 12
_DONE = {Outcome.AUTO: "to rewrite", Outcome.SUGGEST: "suggested", Outcome.MANUAL: "by hand", Outcome.NOTE: "note"}


def port_document(done: Ported, *, everything: bool = False) -> Document:
    """Lay out a port.

    Args:
        done: What was found and done.
        everything: Whether every place is shown, file by file.
    """
    most = (_ALL, _ALL) if everything else (0, 0)
    if done.written and not everything:
        blocks = _result_blocks(done)
    else:
        blocks = [*project_blocks(done), *findings_blocks(done, most=most)]
    summary, tone = port_verdict(done)
    return Document(f"Port of {project_name(done.analysis.root)}", summary, tone, tuple(blocks), _footer(done))


def _result_blocks(done: Ported) -> list[Block]:
    """Return what was written and what is left to do, without the plan that was shown before."""
    blocks: list[Block] = []
    if done.changed:
        more = [f"- and {len(done.changed) - _SHOWN_UNREAD} more"] if len(done.changed) > _SHOWN_UNREAD else []
        rows = [*(f"- {as_code(path)}" for path in done.changed[:_SHOWN_UNREAD]), *more]
        blocks.append(Section("Files changed", (Text("\n".join(rows)),)))
    left = [one for one in shown_issues(done) if one.outcome in {Outcome.MANUAL, Outcome.SUGGEST}]
    return [*blocks, *group_sections(left, written=True), *_more_blocks(done, _SHOWN_UNREAD)]


def port_verdict(done: Ported) -> tuple[str, Tone]:
    """Return what a port comes to in a sentence or two, and its tone."""
    counts = Counter(issue.outcome for issue in pending(done.analysis, suggestions=done.suggestions))
    files = count_text(len({one.path for one in shown_issues(done) if one.outcome is Outcome.AUTO}), "file")
    missing = unread(done.analysis)
    if not done.analysis.issues:
        if missing:
            told = f"{count_text(len(missing), 'source')} could not be read; nothing in the others needs a port"
            return f"{told}: {_read(done)}.", Tone.WARNING
        if done.analysis.narrowed:
            return f"Nothing found, apart from what is known or ignored: {_read(done)}.", Tone.GOOD
        return f"Nothing in it needs a port: {_read(done)}.", Tone.GOOD
    if done.written and done.made:
        told = f"{count_text(done.made, 'place')} in {files} rewritten"
    elif done.made:
        told = f"{count_text(done.made, 'place')} in {files} to be rewritten"
    else:
        told = "Nothing to rewrite"
    left = [
        (counts[Outcome.SUGGEST], "suggested rewrite", "suggested rewrites"),
        (counts[Outcome.MANUAL], "place to port by hand", "places to port by hand"),
        (len(missing), "source that was not read", "sources that were not read"),
        (counts[Outcome.NOTE], "note", "notes"),
    ]
    rest = ", ".join(count_text(count, one, many) for count, one, many in left if count)
    tone = (
        Tone.WARNING
        if counts[Outcome.MANUAL] or missing or done.left_alone
        else Tone.ADVICE
        if done.open
        else Tone.GOOD
    )
    return f"{told}{'; ' + rest if rest else ''}. {_read(done).capitalize()}.", tone


def _read(done: Ported) -> str:
    analysis = done.analysis
    files = sum(analysis.looked_at.values())
    return f"{count_text(files, 'file')} with {analysis.lines:,} lines read in {analysis.time_ms / 1000:.1f} s"


def _footer(done: Ported) -> str:
    explained = "`-v` lists every place, `rocmend port --explain ID` explains a rule."
    if done.written:
        left = "What is left is listed above; `--suggestions` takes suggested rewrites too. "
        told = left if done.open and not done.suggestions else ""
        if not (done.changed or done.added):
            return f"{told}There was nothing to write. {explained}"
        return f"{told}`rocmend port verify` checks it, `rocmend port undo` undoes it."
    if done.changed or done.added:
        return f"Nothing was written: `--diff` shows the changes, `--apply` writes them. {explained}"
    return f"Nothing was written. {explained}"


def project_name(root: str) -> str:
    """Return what a project is called: its path as it was given, and its folder's name where that says nothing."""
    return Path(root).resolve().name or root if root in {".", ".."} else root


def not_in_the_patch(analysis: Analysis, left_alone: Sequence[LeftAlone], *, suggestions: bool) -> str:
    """Return what a port does not do by itself, as a list in words; empty where it does all."""
    counts = Counter(issue.outcome for issue in pending(analysis, suggestions=suggestions))
    rows = [
        (counts[Outcome.MANUAL], "place to port by hand", "places to port by hand"),
        (
            counts[Outcome.SUGGEST],
            "suggested rewrite (--suggestions)",
            "suggested rewrites (--suggestions)",
        ),
        (len(left_alone), "file that was left alone", "files that were left alone"),
        (len(unread(analysis)), "source that was not read", "sources that were not read"),
    ]
    return ", ".join(count_text(count, one, many) for count, one, many in rows if count)


def findings_blocks(done: Ported, *, most: tuple[int, int]) -> list[Block]:
    """Return what was found: by what is done about it, then file by file, then what was not read.

    Args:
        done: What was found.
        most: How many files are shown, and how many places of each; none where it is 0.
    """
    blocks: list[Block] = []
    issues = shown_issues(done)
    if issues:
        blocks += group_sections(issues, written=done.written)
    if issues and most[0]:
        blocks += _by_file(done, issues, most)
    return [*blocks, *_more_blocks(done, most[0] or _SHOWN_UNREAD)]


def _more_blocks(done: Ported, most: int) -> list[Block]:
    """Return what was left alone, made, not read, and what else there is to say."""
    blocks: list[Block] = []
    if done.left_alone:
        rows = [[Cell(one.path), Cell(one.reason)] for one in done.left_alone]
        blocks.append(Section("Left alone", (table(["file", "why"], rows),), Tone.WARNING))
    if done.added:
        title = "Files made" if done.written else "Files to be made"
        blocks.append(Section(title, (Text("\n".join(f"- `{path}`" for path in done.added)),), folded=True))
    skipped = [file for file in done.analysis.files if file.skipped]
    if skipped:
        blocks.append(Section("Not read", _skipped(skipped, most), folded=True))
    notes = (*done.analysis.notes, *done.notes)
    if notes:
        blocks.append(Section("Notes", tuple(Text(as_markdown(note)) for note in notes)))
    return blocks


def _by_file(done: Ported, issues: Sequence[Issue], most: tuple[int, int]) -> list[Block]:
    """Return a card for each file with issues, those for a person first."""
    by_path: dict[str, list[Issue]] = {}
    for issue in issues:
        by_path.setdefault(issue.path, []).append(issue)
    there = (
        msgspec.structs.replace(file, issues=tuple(by_path[file.path]))
        for file in done.analysis.files
        if file.path in by_path
    )
    files = sorted(there, key=lambda file: (not file.manual, file.path))
    shown = files[: most[0]]
    cards: list[Block] = [_card(file, most[1], written=done.written) for file in shown]
    if len(files) > len(shown):
        cards.append(
            Text(f"… and {count_text(len(files) - len(shown), 'more file')}: `rocmend port -v` shows all.", Tone.MUTED)
        )
    return [Section("Files", tuple(cards))]


def _card(file: FileReport, most: int, *, written: bool) -> Card:
    ranked = sorted(file.issues, key=lambda issue: (_ORDER[issue.outcome], issue.start))
    shown = sorted(ranked[:most], key=lambda issue: issue.start)
    blocks: list[Block] = [issues_table(shown, written=written)]
    if len(ranked) > len(shown):
        blocks.append(Text(f"… and {len(ranked) - len(shown)} more.", Tone.MUTED))
    details = tuple(Code(f"{issue.line}: {issue.snippet}") for issue in shown)
    tone = Tone.WARNING if file.manual else Tone.ADVICE
    label = "by hand" if file.manual else ""
    return Card(file.path, tone, label, "", tuple(blocks), details, "The lines", folded=True)


_ORDER = {Outcome.MANUAL: 0, Outcome.SUGGEST: 1, Outcome.AUTO: 2, Outcome.NOTE: 3}


def issues_table(issues: Sequence[Issue], *, written: bool = False) -> Block:
    """Return issues of one file, a line each.

    Args:
        issues: Those of the file.
        written: Whether the rewrites were made.
    """
    done = {**_DONE, Outcome.AUTO: "rewritten"} if written else _DONE
    rows = [
        [
            Cell(str(issue.line)),
            Cell(issue.rule, TONE[issue.severity]),
            Cell(done[issue.outcome]),
            Cell(sentences(issue)),
        ]
        for issue in issues
    ]
    return table(["line", "rule", "", "what"], rows)


def _skipped(files: Sequence[FileReport], most: int) -> tuple[Block, ...]:
    shown = files[:most]
    blocks: list[Block] = [table(["file", "why"], [[Cell(file.path), Cell(file.skipped)] for file in shown])]
    if len(files) > len(shown):
        blocks.append(Text(f"… and {len(files) - len(shown)} more.", Tone.MUTED))
    return tuple(blocks)


def undone_document(undone: Undone) -> Document:
    """Lay out what was taken back."""
    summary = f"{count_text(len(undone.restored), 'file')} restored, {len(undone.removed)} removed"
    blocks: list[Block] = []
    if undone.kept:
        rows = "\n".join(f"- {as_code(path)}" for path in undone.kept)
        blocks.append(Section("Changed by hand since, and kept", (Text(rows),), Tone.WARNING))
    if undone.commands:
        told = "The port is still in them. These take it out, and leave what else is there; then undo again:"
        blocks += [Text(told), Code("\n".join(undone.commands), "sh")]
    blocks += [Text(as_markdown(note)) for note in undone.notes]
    tone = Tone.WARNING if undone.kept else Tone.GOOD
    return Document(
        "Port undone", f"{summary}{f', {len(undone.kept)} kept' if undone.kept else ''}.", tone, tuple(blocks)
    )
