"""Render a document as Markdown."""

from __future__ import annotations

import re

from rocmend.report.document import (
    Bars,
    Block,
    Card,
    Code,
    Document,
    Link,
    Links,
    Option,
    Pairs,
    Plot,
    Ranges,
    Section,
    Stacks,
    Step,
    Steps,
    Table,
    Text,
    Tile,
    Tiles,
    Timeline,
    Topology,
)
from rocmend.report.pictures.tables import table_of
from rocmend.report.visible import as_code, as_markdown, harmless, visible_in

_WEB = re.compile(r"https?://[^\s<>()\[\]]+(?:\([^\s<>()\[\]]*\)[^\s<>()\[\]]*)*")


def render(document: Document) -> str:
    """Return the document as CommonMark with pipe tables, ending in a newline."""
    document = visible_in(document)
    parts = [f"# {_line(document.title)}"]
    if document.summary:
        parts.append(f"**{_line(document.summary)}**")
    parts += [_block(block, 2) for block in document.blocks]
    if document.footer:
        parts += ["---", harmless(document.footer)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(text: str) -> str:
    """Put plain text on one line; what looks like a tag or a mark of Markdown stays text."""
    return as_markdown(" ".join(text.split()))


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _link(link: Link) -> str:
    """Return a link to the web; any other address, and one that would end the link, is shown as text."""
    if not link.url:
        return _line(link.label)
    if not _WEB.fullmatch(link.url):
        return " ".join(filter(None, (_line(link.label), as_code(link.url))))
    return f"[{_line(link.label or link.url)}]({link.url})"


def _fence(text: str, language: str) -> str:
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def _block(block: Block, level: int) -> str:  # noqa: PLR0911  one line a kind of block
    match block:
        case Text():
            return harmless(block.markdown.strip())
        case Code():
            return _fence(block.text, block.language)
        case Links():
            return f"{_line(block.label)}: " + "; ".join(map(_link, block.links))
        case Pairs():
            return "\n".join(
                f"- **{_line(label)}**: {_line(value)}" + (f" ({_line(note)})" if note else "")
                for label, value, note in block.rows
            )
        case Table():
            return _table(block)
        case Tiles():
            return "\n".join(map(_tile, block.tiles))
        case Bars() | Ranges() | Stacks() | Topology() | Timeline() | Plot():
            return _table(table_of(block))
        case Card():
            return _card(block, level)
        case Steps():
            return "\n\n".join(_step(step, level) for step in block.steps)
        case Section():
            inner = "\n\n".join(_block(item, level + 1) for item in block.blocks)
            return f"{'#' * min(level, 6)} {_line(block.title)}\n\n{inner}".rstrip()


def _table(block: Table) -> str:
    lines = ["| " + " | ".join(_cell(column) for column in block.columns) + " |", "|" + "---|" * len(block.columns)]
    lines += ["| " + " | ".join(_cell(cell.whole) for cell in row) + " |" for row in block.rows]
    return (f"*{_line(block.caption)}*\n\n" if block.caption else "") + "\n".join(lines)


def _tile(tile: Tile) -> str:
    return f"- **{_line(tile.label)}**: {_line(tile.word)}. {_line(tile.text)}" + (
        f" ({_line(tile.note)})" if tile.note else ""
    )


def _card(block: Card, level: int) -> str:
    label = f"{_line(block.label)}: " if block.label else ""
    ref = f" ({as_code(block.ref)})" if block.ref else ""
    parts = [f"{'#' * min(level, 6)} {label}{_line(block.title)}{ref}"]
    parts += [_block(item, level + 1) for item in (*block.blocks, *block.details)]
    return "\n\n".join(part for part in parts if part)


def _step(step: Step, level: int) -> str:
    number = f"{step.number}. " if step.number else ""
    parts = [f"{'#' * min(level, 6)} {number}{_line(step.title)}", harmless(step.text.strip()), *_how(step)]
    if step.check:
        parts.append(f"{_line(step.check_when)} check{f' (expected: {_line(step.expect)})' if step.expect else ''}:")
        parts.append(_fence(step.check, "bash"))
    elif step.expect:
        parts.append(f"{_line(step.check_when)} check: {_line(step.expect)}")
    if step.undo:
        parts.append(f"Undo: {harmless(step.undo)}")
    for option in step.options:
        parts += [f"**{_line(option.label)}:** {_line(option.title)}", harmless(option.text.strip()), *_how(option)]
        parts += [f"Undo: {harmless(option.undo)}"] if option.undo else []
    if step.settles:
        parts.append(f"{step.relation} " + ", ".join(map(as_code, step.settles)) + ".")
    return "\n\n".join(part for part in parts if part)


def _how(item: Step | Option) -> list[str]:
    needs = f"Needs {_line(', '.join(item.needs))}." if item.needs else ""
    risk = f"Risk: {_line(item.risk)}" if item.risk else ""
    code = _fence("\n".join(item.commands), "bash") if item.commands else ""
    return [code, " ".join(filter(None, (needs, risk)))]
