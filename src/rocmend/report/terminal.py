"""Render a document for a terminal: readable at 80 columns, colours never the only sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, get_args

from rocmend.report.document import (
    Block,
    Card,
    Code,
    Document,
    Links,
    Option,
    Pairs,
    Picture,
    Section,
    Step,
    Steps,
    Table,
    Text,
    Tiles,
    Tone,
)
from rocmend.report.pictures.lines import lines
from rocmend.report.visible import visible_in

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = {
    Tone.PLAIN: "",
    Tone.GOOD: "green",
    Tone.ERROR: "bold red",
    Tone.WARNING: "bold yellow",
    Tone.ADVICE: "cyan",
    Tone.INFO: "blue",
    Tone.MUTED: "dim",
}
_INDENT = 2
_MAX_WIDTH = 110
_MIN_WIDTH = 40


def render(document: Document, stream: TextIO, *, width: int | None = None, details: bool = False) -> None:
    """Print the document.

    Args:
        document: What to print.
        stream: Where to; colours are used only where it is a terminal and NO_COLOR is not set.
        width: Columns; None for the terminal's own, at most 110.
        details: Print cards' details too.
    """
    from rich.console import Console

    class Terminal(Console):
        """A console that leaves a closed pipe to the caller; rich would end the program with exit code 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Terminal(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False)
    if width is None:
        console.width = max(_MIN_WIDTH, min(console.width, _MAX_WIDTH))
    _Printer(console, details=details).document(visible_in(document))


class _Printer:
    """Prints blocks at an indentation."""

    def __init__(self, console: Console, *, details: bool) -> None:
        self.console = console
        self.details = details

    def document(self, document: Document) -> None:
        self._wrapped(document.title, "bold")
        if document.summary:
            self._wrapped(document.summary, _STYLE[document.tone])
        for block in sorted(document.blocks, key=lambda block: isinstance(block, Section) and block.beside):
            self.console.print()
            self.block(block, 0)
        if document.footer:
            self.console.print()
            self._wrapped(_plain(document.footer), "dim")

    def _wrapped(self, text: str, style: str = "", indent: int = 0, hang: int = 0) -> None:
        """Print text wrapped to the width, continuation lines indented by ``hang`` more."""
        from rich.text import Text as RichText

        room = max(20, self.console.width - indent - hang)
        for paragraph in text.split("\n"):
            lines = RichText(paragraph).wrap(self.console, room) or [RichText("")]
            for number, line in enumerate(lines):
                line.rstrip()
                pad = indent + (hang if number else 0)
                self.console.print(RichText(" " * pad + line.plain, style=style), soft_wrap=True)

    def block(self, block: Block, indent: int) -> None:
        """Print one block."""
        printers: dict[type, Callable[[Any, int], None]] = {
            Text: self._text,
            Code: self._code,
            Links: self._links,
            Pairs: self._pairs,
            Table: self._table,
            Tiles: self._tiles,
            **dict.fromkeys(get_args(Picture), self._picture),
            Card: self._card,
            Steps: self._steps,
            Section: self._section,
        }
        printers[type(block)](block, indent)

    def _code(self, block: Code, indent: int) -> None:
        for line in block.text.rstrip().splitlines():
            self._raw(" " * (indent + _INDENT) + line, "bold")

    def _links(self, block: Links, indent: int) -> None:
        label = f"{block.label}: "
        for link in block.links:
            if not link.label:
                self._raw(" " * indent + label + link.url, "bold")
                continue
            self._wrapped(f"{label}{link.label}", "dim", indent, _INDENT)
            if link.url:
                self._raw(" " * (indent + _INDENT) + link.url, "dim")
            label = " " * len(label)

    def _section(self, block: Section, indent: int) -> None:
        self._wrapped(block.title, "bold underline", indent)
        for number, item in enumerate(block.blocks):
            if number and isinstance(item, (Card, Section, Table, Tiles, Picture)):
                self.console.print()
            self.block(item, indent)

    def _text(self, block: Text, indent: int) -> None:
        if "\n" not in block.markdown.strip():
            self._wrapped(_plain(block.markdown), _STYLE[block.tone], indent)
            return
        from rich.markdown import Markdown
        from rich.padding import Padding

        body = Markdown(block.markdown.strip(), hyperlinks=False, style=_STYLE[block.tone] or "none")
        self.console.print(Padding(body, (0, 0, 0, indent)))

    def _raw(self, text: str, style: str) -> None:
        """Print a line that must stay whole (a command, an address), whatever the width."""
        from rich.text import Text as RichText

        self.console.print(RichText(text, style=style), soft_wrap=True)

    def _pairs(self, block: Pairs, indent: int) -> None:
        from rich.padding import Padding
        from rich.table import Table as RichTable
        from rich.text import Text as RichText

        grid = RichTable.grid(padding=(0, 2, 0, 0), pad_edge=False)
        grid.add_column(overflow="fold", max_width=max(12, self.console.width * 2 // 5))
        grid.add_column(overflow="fold", ratio=3)
        notes = any(note for _, _, note in block.rows)
        if notes:
            grid.add_column(overflow="fold", style="dim", ratio=2)
        for label, value, note in block.rows:
            row = [RichText(label), RichText(value)]
            grid.add_row(*row, *([RichText(note)] if notes else []))
        self.console.print(Padding(grid, (0, 0, 0, indent)))

    def _table(self, block: Table, indent: int) -> None:
        from rich import box
        from rich.padding import Padding
        from rich.table import Table as RichTable
        from rich.text import Text as RichText

        if block.caption:
            self._wrapped(block.caption, "italic", indent)
        grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column in block.columns:
            grid.add_column(column, overflow="fold")
        for row in block.rows:
            grid.add_row(*(RichText(cell.text, style=_STYLE[cell.tone]) for cell in row))
        self.console.print(Padding(grid, (0, 0, 0, indent)))

    def _tiles(self, block: Tiles, indent: int) -> None:
        """Print a line for each; what they lead to follows in a terminal anyway."""
        from rich.padding import Padding
        from rich.table import Table as RichTable
        from rich.text import Text as RichText

        grid = RichTable.grid(padding=(0, 2, 0, 0), pad_edge=False)
        for tile in block.tiles:
            grid.add_row(RichText(tile.label), RichText(tile.word, style=_STYLE[tile.tone]), RichText(tile.text))
        self.console.print(Padding(grid, (0, 0, 0, indent)))

    def _picture(self, block: Picture, indent: int) -> None:
        from rich.text import Text as RichText

        if block.caption:
            self._wrapped(block.caption, "italic", indent)
        for line in lines(block, max(20, self.console.width - indent)):
            if line.wraps:
                (text, tone), *_ = line.parts
                self._wrapped(text, _STYLE[tone], indent + line.indent)
            else:
                drawn = RichText(" " * (indent + line.indent))
                for text, tone in line.parts:
                    drawn.append(text, _STYLE[tone])
                self.console.print(drawn, soft_wrap=True)

    def _card(self, block: Card, indent: int) -> None:
        label = f"{block.label.upper()} " if block.label else ""
        self._wrapped(f"{label}{block.title}", _STYLE[block.tone], indent, len(label))
        inner = indent + _INDENT
        for item in block.blocks:
            self.block(item, inner)
        if self.details:
            for item in block.details:
                self.block(item, inner)
        if block.ref:
            self._wrapped(f"id: {block.ref}", "dim", inner)

    def _steps(self, block: Steps, indent: int) -> None:
        width = len(str(max((step.number for step in block.steps), default=0)))
        for place, step in enumerate(block.steps):
            if place:
                self.console.print()
            mark = f"{step.number:>{width}}. " if step.number else "- "
            self._wrapped(f"{mark}{step.title}", "bold", indent, len(mark))
            self._step(step, indent + len(mark))

    def _step(self, step: Step, indent: int) -> None:
        if step.text:
            self._text(Text(step.text), indent)
        self._commands(step, indent)
        if step.check:
            self._wrapped(f"{step.check_when} check{f' (expected: {step.expect})' if step.expect else ''}:", "", indent)
            self._code(Code(step.check), indent)
        elif step.expect:
            self._wrapped(f"{step.check_when} check: {_plain(step.expect)}", "", indent)
        if step.undo:
            self._wrapped(f"Undo: {_plain(step.undo)}", "dim", indent, _INDENT)
        for option in step.options:
            self._wrapped(f"{option.label}: {option.title}", "", indent, _INDENT)
            if option.text:
                self._text(Text(option.text), indent + _INDENT)
            self._commands(option, indent + _INDENT)
        if step.settles:
            self._wrapped(f"{'Settles' if step.number else 'About'}: {', '.join(step.settles)}", "dim", indent, _INDENT)

    def _commands(self, item: Step | Option, indent: int) -> None:
        self._code(Code("\n".join(item.commands)), indent)
        needs = f"Needs {', '.join(item.needs)}." if item.needs else ""
        risk = f"Risk: {item.risk}" if item.risk else ""
        if needs or risk:
            self._wrapped(" ".join(filter(None, (needs, risk))), "", indent)


def _plain(markdown: str) -> str:
    """Return one paragraph of Markdown as terminal text: marks dropped, link targets kept."""
    import re

    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r"\1 (\2)", " ".join(markdown.split()))
    text = re.sub(r"(\*\*|__)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<!\\)`([^`]+)`", r"\1", text)
    return re.sub(r"\\([*_<\[\\`&!#>~])", r"\1", text)
