"""Render a document for a terminal: readable at 80 columns, colours never the only sign."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
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
_GAP = 3
"""Between the columns of a table."""
_FEW_STEPS = 3
"""Steps up to which each has its commands, whatever it does."""
_TWO_LINES = 2
"""Columns of a table beyond which a row that is too wide is two lines."""
_PLAIN_LINES = re.compile(r"(?:(?![-#>|\d`~\s])[^\n]*\n\n?)?(?:- [^\n]*\n)*(?:- [^\n]*)?|[^\n]*")
"""A line, a list, or a line and the list that it introduces."""
_SENTENCE = re.compile(r"(?<=[\w)][.;])\s+")
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
            if self._shown(block):
                self.console.print()
                self.block(block, 0)
        if document.footer:
            self.console.print()
            for line in document.footer.split("\n"):
                self._wrapped(plain(line), "dim")

    def _shown(self, block: Block) -> bool:
        return self.details or not (isinstance(block, Section) and (block.detail or block.beside))

    def _wrapped(self, text: str, style: str = "", indent: int = 0, hang: int = 0) -> None:
        """Print text wrapped to the width, continuation lines indented by ``hang`` more; no word is broken."""
        from rich.text import Text as RichText

        from rocmend.report.columns import fold

        room = max(20, self.console.width - indent - hang)
        for paragraph in text.split("\n"):
            for number, line in enumerate(fold(paragraph, room)):
                pad = indent + (hang if number else 0)
                self.console.print(RichText(" " * pad + line if line else "", style=style), soft_wrap=True)

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
                label = " " * len(label)
                continue
            self._wrapped(f"{label}{link.label}", "dim", indent, _INDENT)
            if link.url:
                self._raw(" " * (indent + _INDENT) + link.url, "dim")
            label = ""

    def _section(self, block: Section, indent: int) -> None:
        self._wrapped(block.title, "bold underline", indent)
        before: Block | None = None
        for item in filter(self._shown, block.blocks):
            brief = isinstance(item, Card) and item.brief and not self.details
            apart = isinstance(item, (Card, Section, Table, Tiles, Picture)) and not brief
            if (before and apart) or isinstance(before, Table):
                self.console.print()
            self.block(item, indent)
            before = item

    def _text(self, block: Text, indent: int) -> None:
        lines = block.markdown.strip().splitlines()
        if _PLAIN_LINES.fullmatch("\n".join(lines)):
            for line in lines or [""]:
                self._wrapped(plain(line), _STYLE[block.tone], indent, 2 if line.startswith("- ") else 0)
            return
        from rich.markdown import Markdown
        from rich.text import Text as RichText

        body = Markdown(block.markdown.strip(), hyperlinks=False, style=_STYLE[block.tone] or "none")
        options = self.console.options.update(width=max(20, self.console.width - indent))
        drawn: list[RichText] = []
        for segments in self.console.render_lines(body, options, pad=False):
            line_text = RichText.assemble(*((one.text, one.style or "") for one in segments))
            line_text.rstrip()  # lines come as wide as the terminal
            if line_text.plain or drawn:
                drawn.append(line_text)
        for text in drawn:
            self.console.print(RichText(" " * indent if text.plain else "") + text, soft_wrap=True)

    def _raw(self, text: str, style: str) -> None:
        """Print a line that must stay whole (a command, an address), whatever the width."""
        from rich.text import Text as RichText

        self.console.print(RichText(text, style=style), soft_wrap=True)

    def _line(self, cells: Sequence[tuple[str, str]], widths: Sequence[int], indent: int, gap: int) -> None:
        """Print cells (text, style) beside each other."""
        from rich.cells import cell_len
        from rich.text import Text as RichText

        from rocmend.report.columns import fold

        folded = [fold(text, width) for (text, _), width in zip(cells, widths, strict=True)]
        for number in range(max(map(len, folded))):
            line = RichText(" " * indent)
            for (_, style), parts, width in zip(cells, folded, widths, strict=True):
                part = parts[number] if number < len(parts) else ""
                line.append(part, style).append(" " * (width - cell_len(part) + gap))
            line.rstrip()
            self.console.print(line, soft_wrap=True)

    def _pairs(self, block: Pairs, indent: int) -> None:
        """Print label, value and note beside each other; in a row with a word too long for that, below each other."""
        from rich.cells import cell_len

        from rocmend.report.columns import widths

        if not block.rows:
            return
        labels = max(cell_len(label) for label, _, _ in block.rows)
        labels = min(labels, max(12, self.console.width * 2 // 5))
        rest = indent + labels + _INDENT
        notes = any(note for _, _, note in block.rows)
        values = [[value, note] if notes else [value] for _, value, note in block.rows]
        shared = widths(values, self.console.width - rest, _INDENT)
        if shared is None:  # share it among the rows whose words let it
            short = [row for row in values if max(map(_longest, row)) <= (self.console.width - rest - _INDENT) // 2]
            shared = widths(short, self.console.width - rest, _INDENT) if short else None
        for label, value, note in block.rows:
            if _longest(label) > labels:
                self._wrapped(label, "", indent)
                label = ""  # noqa: PLW2901  printed above
            cells = [(label, ""), (value, ""), *([(note, "dim")] if notes else [])]
            if shared is None or _longest(value) > shared[0] or (notes and _longest(note) > shared[1]):
                room = self.console.width - rest
                beside = _longest(value) <= room
                self._line([cells[0], cells[1] if beside else ("", "")], [labels, room], indent, _INDENT)
                if not beside:
                    self._wrapped(value, "", indent + _INDENT)
                if note:
                    self._wrapped(note, "dim", rest if _longest(note) <= room else indent + _INDENT)
            else:
                self._line(cells, [labels, *shared], indent, _INDENT)

    def _table(self, block: Table, indent: int) -> None:
        """Print a table; where it is too wide, each row as its key and a line of the rest, or as a block of lines."""
        from rocmend.report.columns import widths

        if block.caption:
            self._wrapped(block.caption, "italic", indent)
        rows = [list(block.columns), *([cell.whole for cell in row] for row in block.rows)]
        key, room = block.key, self.console.width - indent
        if not block.stacked:
            found = widths(rows, room, _GAP)
            noted = any(cell.note for row in block.rows for cell in row)  # a figure and its note, broken, are no help
            if found is not None and not (noted and _broken(rows, found)):
                self._rows(block, found, indent, -1)
                return
            if len(block.columns) > _TWO_LINES and not noted and max(_longest(row[key]) for row in rows) <= room:
                found = widths([row[:key] + row[key + 1 :] for row in rows], room - _INDENT, _GAP)
                if found is not None:
                    self._rows(block, found, indent, key)
                    return
        self._lines(block, indent)

    def _lines(self, block: Table, indent: int) -> None:
        """Print each row as a block: its key, then a line for each other cell with the column's name before it."""
        from rich.cells import cell_len

        others = [column for place, column in enumerate(block.columns) if place != block.key]
        room = self.console.width - indent - _INDENT
        label_width = 0 if block.stacked else max(map(cell_len, others), default=0) + 2
        words = [_longest(cell.whole) for row in block.rows for place, cell in enumerate(row) if place != block.key]
        if label_width > min(room * 2 // 5, room - max(words, default=0)):
            label_width = 0
        notes = [cell_len(cell.note) for row in block.rows for cell in row if cell.note]
        texts = [cell_len(cell.text) for row in block.rows for place, cell in enumerate(row) if place != block.key]
        shares = [label_width - 1, max(texts, default=0), max(notes, default=0)]
        beside = bool(notes and label_width) and sum(shares) + 2 * _INDENT <= room
        for number, row in enumerate(block.rows):
            if number and not block.stacked:
                self.console.print()
            cells = list(zip(block.columns, row, strict=True))
            for place, (column, cell) in enumerate([cells.pop(block.key), *cells]):
                if not cell.text:
                    continue
                label = f"{column}: " if column and (place or not block.stacked) else ""
                style = _STYLE[cell.tone] or ("bold" if not place and (block.stacked or not column) else "")
                if not place:
                    self._wrapped(label + cell.whole, style, indent, _INDENT)
                elif beside:
                    parts = [(label.rstrip(), ""), (cell.text, style), (cell.note, style)]
                    self._line(parts, shares, indent + _INDENT, _INDENT)
                else:
                    whole = label.ljust(label_width) + cell.whole
                    self._wrapped(whole, style, indent + _INDENT, label_width or _INDENT)

    def _rows(self, block: Table, widths: Sequence[int], indent: int, apart: int) -> None:
        """Print the head and the rows of a table; a column ``apart`` stands above the rest, and rows are set apart."""
        head = [(column, "bold") for column in block.columns]
        inner = indent + (_INDENT if apart >= 0 else 0)
        for number, cells in enumerate(
            [head, *([(cell.whole, _STYLE[cell.tone]) for cell in row] for row in block.rows)]
        ):
            if apart >= 0:
                if number > 1:
                    self.console.print()
                text, style = cells.pop(apart)
                self._wrapped(text, style or "bold", indent)
            self._line(cells, widths, inner, _GAP)
            if not number:
                self._raw(" " * indent + "─" * (sum(widths) + _GAP * (len(widths) - 1) + inner - indent), "")

    def _tiles(self, block: Tiles, indent: int) -> None:
        """Print a line for each; what they lead to follows in a terminal anyway; of what is not well, why."""
        from rocmend.report.columns import widths

        rows = [[tile.label, tile.word, tile.text] for tile in block.tiles]
        found = widths(rows, self.console.width - indent, _INDENT) if rows else None
        for tile in block.tiles:
            cells = [(tile.label, ""), (tile.word, _STYLE[tile.tone]), (tile.text, "")]
            if found is not None:
                self._line(cells, found, indent, _INDENT)
            else:
                self._wrapped(f"{tile.label}: {tile.word}. {tile.text}", "", indent, _INDENT)
            if tile.note and tile.tone in {Tone.WARNING, Tone.ERROR}:
                self._wrapped(tile.note, "dim", indent + (found[0] + _INDENT if found is not None else _INDENT))

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
        brief = f" {block.brief}" if block.brief and not self.details else ""
        self._wrapped(f"{label}{block.title}{brief}", _STYLE[block.tone], indent, len(label))
        if brief:
            return
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
            mark = f"{step.number:>{width}}. " if step.number else "- "
            if not self.details:
                title = f"{mark}{step.title}{_cost(step, {'medium', 'high'})}"
                self._wrapped(title, "bold", indent, len(mark))
                self._short_step(step, indent + len(mark), few=len(block.steps) <= _FEW_STEPS)
                continue
            if place:
                self.console.print()
            self._wrapped(f"{mark}{step.title}", "bold", indent, len(mark))
            self._step(step, indent + len(mark))

    def _short_step(self, step: Step, indent: int, *, few: bool) -> None:
        """Print what is done, and what else would do; of many that only look, and so have no undo, the title alone."""
        if step.text and (step.by_hand or not step.commands):
            self._text(Text(step.text), indent)
        elif step.text and not step.number and step.settles:
            self._wrapped(_SENTENCE.split(plain(step.text))[0].rstrip(";."), "", indent)
        if few or step.number or step.undo:
            self._code(Code("\n".join(step.commands)), indent)
        for option in step.options:
            told = f"{option.label}: {option.title}{_cost(option, {'low', 'medium', 'high'})}"
            more = f"Undo: {plain(option.undo)}" if option.undo else ""
            self._wrapped(f"{told}. {more}" if more else told, "", indent, _INDENT)
            if option.text and not option.commands:
                self._wrapped(plain(option.text), "", indent + _INDENT)
            self._code(Code("\n".join(option.commands)), indent + _INDENT)

    def _step(self, step: Step, indent: int) -> None:
        if step.text:
            self._text(Text(step.text), indent)
        self._commands(step, indent)
        if step.check:
            self._wrapped(f"{step.check_when} check{f' (expected: {step.expect})' if step.expect else ''}:", "", indent)
            self._code(Code(step.check), indent)
        elif step.expect:
            self._wrapped(f"{step.check_when} check: {plain(step.expect)}", "", indent)
        if step.undo:
            self._wrapped(f"Undo: {plain(step.undo)}", "dim", indent, _INDENT)
        for option in step.options:
            self._wrapped(f"{option.label}: {option.title}", "", indent, _INDENT)
            if option.text:
                self._text(Text(option.text), indent + _INDENT)
            self._commands(option, indent + _INDENT)
            if option.undo:
                self._wrapped(f"Undo: {plain(option.undo)}", "dim", indent + _INDENT, _INDENT)
        if step.settles:
            self._wrapped(f"{step.relation}: {', '.join(step.settles)}", "dim", indent, _INDENT)

    def _commands(self, item: Step | Option, indent: int) -> None:
        self._code(Code("\n".join(item.commands)), indent)
        needs = f"Needs {', '.join(item.needs)}." if item.needs else ""
        risk = f"Risk: {item.risk}" if item.risk else ""
        if needs or risk:
            self._wrapped(" ".join(filter(None, (needs, risk))), "", indent)


def _cost(item: Step | Option, levels: Collection[str]) -> str:
    """Return what a step or another way needs, and its risk where that is of these levels: `` (root, low risk)``."""
    level = item.risk.partition(":")[0].rstrip(".")
    told = [*item.needs, *([f"{level} risk"] if level in levels else [])]
    return f" ({', '.join(told)})" if told else ""


def _broken(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> bool:
    """Return whether a cell does not fit on a line of its column."""
    from rich.cells import cell_len

    return any(cell_len(cell) > width for row in rows for cell, width in zip(row, widths, strict=True))


def _longest(text: str) -> int:
    """Return the width of the longest word."""
    from rich.cells import cell_len

    return max(map(cell_len, text.split()), default=0)


def plain(markdown: str) -> str:
    """Return one paragraph of Markdown as terminal text: marks dropped, link targets kept."""
    import re

    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r"\1 (\2)", " ".join(markdown.split()))
    text = re.sub(r"(\*\*|__)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<!\\)`([^`]+)`", r"\1", text)
    return re.sub(r"\\([*_<\[\\`&!#>~|])", r"\1", text)
