"""What a report consists of, before anyone decides how it looks.

Commands build a document out of computed data; the renderers (terminal, Markdown, HTML) turn it into text. A document
holds display strings only: nothing is computed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class Tone(StrEnum):
    """How a piece of a report is meant: renderers give each tone a colour and a word, never a colour alone."""

    PLAIN = "plain"
    GOOD = "good"
    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"
    INFO = "info"
    MUTED = "muted"


class Cell(msgspec.Struct, frozen=True):
    """A table cell with a tone.

    Attributes:
        text: What it says.
        tone: How it is meant.
        ref: The id of a card that says more.
        note: A few words about it; HTML puts them on a line of their own.
    """

    text: str
    tone: Tone = Tone.PLAIN
    ref: str = ""
    note: str = ""

    @property
    def whole(self) -> str:
        """Text and note on one line."""
        return f"{self.text} {self.note}" if self.note else self.text


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A paragraph or more of Markdown (paragraphs, lists, emphasis, code, links; no raw HTML)."""

    markdown: str
    tone: Tone = Tone.PLAIN


class Code(msgspec.Struct, frozen=True, tag="code"):
    """Lines to be shown as they are, such as shell commands."""

    text: str
    language: str = ""


class Link(msgspec.Struct, frozen=True):
    """A reference: label and address; with an empty label the address stands for itself, on one line."""

    label: str
    url: str = ""


class Links(msgspec.Struct, frozen=True, tag="links"):
    """References, on one line each."""

    label: str
    links: tuple[Link, ...]


class Pairs(msgspec.Struct, frozen=True, tag="pairs"):
    """Label and value lines, each with a muted note (for facts: where it was read)."""

    rows: tuple[tuple[str, str, str], ...]


class Table(msgspec.Struct, frozen=True, tag="table"):
    """A table.

    Attributes:
        columns: Their heads.
        rows: Their cells.
        caption: One line above it.
        heat: HTML fills each cell with the colour of its tone.
        key: The column that names the row; a terminal that is too narrow for the columns shows it first.
        stacked: A terminal of any width shows a row as its key, then each other cell labelled in a line of its own.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    heat: bool = False
    key: int = 0
    stacked: bool = False


class Tile(msgspec.Struct, frozen=True):
    """The verdict on one part of a machine.

    Attributes:
        label: The part: ``Firmware``.
        word: The verdict in a word or two; stands beside the colour.
        text: The fact that it is about: ``MES 0x83``.
        tone: Good, warning, error; muted where it is not known.
        ref: The id of the card that says why, if there is one.
        note: What else there is, in a few words: ``and 2 more``.
    """

    label: str
    word: str
    text: str
    tone: Tone = Tone.PLAIN
    ref: str = ""
    note: str = ""


class Tiles(msgspec.Struct, frozen=True, tag="tiles"):
    """Verdicts side by side, before anything else."""

    tiles: tuple[Tile, ...]


class Bar(msgspec.Struct, frozen=True):
    """A length with what it is of and its value as text: ``present``, 13942784, ``13.3 MiB``."""

    label: str
    value: float
    text: str
    tone: Tone = Tone.PLAIN


class Bars(msgspec.Struct, frozen=True, tag="bars"):
    """Lengths on one axis that begins at 0."""

    bars: tuple[Bar, ...]
    caption: str = ""


class Range(msgspec.Struct, frozen=True):
    """A value between two ends, each with its text."""

    label: str
    low: float
    high: float
    value: float
    low_text: str
    high_text: str
    text: str
    tone: Tone = Tone.PLAIN


class Ranges(msgspec.Struct, frozen=True, tag="ranges"):
    """Values within their ranges, each on an axis of its own."""

    ranges: tuple[Range, ...]
    caption: str = ""


class Stack(msgspec.Struct, frozen=True):
    """A whole that is made of parts, end to end: what is used and what is free."""

    label: str
    parts: tuple[Bar, ...]


class Stacks(msgspec.Struct, frozen=True, tag="stacks"):
    """Stacked bars on one axis that begins at 0; marks are values to be compared with all of them."""

    stacks: tuple[Stack, ...]
    marks: tuple[Bar, ...] = ()
    caption: str = ""


class Device(msgspec.Struct, frozen=True):
    """A device and its link to the host: ``GPU 0``, ``PCIe 5.0 x16``."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN


class Host(msgspec.Struct, frozen=True):
    """A NUMA node, or a host, with the devices attached to it."""

    label: str
    devices: tuple[Device, ...]


class Topology(msgspec.Struct, frozen=True, tag="topology"):
    """Which device hangs on which host; ``fabric`` says in words how devices are linked to each other."""

    hosts: tuple[Host, ...]
    fabric: str = ""
    caption: str = ""


class Span(msgspec.Struct, frozen=True):
    """A stretch of a timeline's row.

    Attributes:
        name: What went on.
        begin: When it began, in the timeline's unit.
        end: When it ended; never before it began.
        tone: How it is meant.
    """

    name: str
    begin: float
    end: float
    tone: Tone = Tone.PLAIN


class TimelineRow(msgspec.Struct, frozen=True):
    """One line of a timeline: what it is of, its spans in order, and how it ended in a few words."""

    label: str
    spans: tuple[Span, ...]
    ending: str = ""


class Timeline(msgspec.Struct, frozen=True, tag="timeline"):
    """Rows of spans on one axis of time that begins at 0."""

    rows: tuple[TimelineRow, ...]
    caption: str = ""
    unit: str = "s"

    @property
    def length(self) -> float:
        """The latest end, at least a little above 0."""
        return max((span.end for row in self.rows for span in row.spans), default=0.0) or 1.0


class Tick(msgspec.Struct, frozen=True):
    """A place on an axis and what is written there: 1048576, ``1 MiB``."""

    value: float
    text: str


class Axis(msgspec.Struct, frozen=True):
    """An axis of a plot.

    Attributes:
        label: What it is of: ``Arithmetic intensity``.
        unit: ``FLOP/byte``; empty where it is a count.
        log: Equal distances are equal ratios; values of 0 and below are left out.
        ticks: Where values are written; empty for round numbers.
    """

    label: str
    unit: str = ""
    log: bool = False
    ticks: tuple[Tick, ...] = ()

    @property
    def title(self) -> str:
        """Label and unit: ``Arithmetic intensity (FLOP/byte)``."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


class Point(msgspec.Struct, frozen=True):
    """A point of a plot.

    Attributes:
        x: Where it is.
        y: Where it is.
        text: What it is, in a few words: ``4096x4096x4096``.
        interval: Lower and upper end of y's interval; empty where it has none.
    """

    x: float
    y: float
    text: str = ""
    interval: tuple[float, ...] = ()


class SeriesKind(StrEnum):
    """How the points of a series are drawn."""

    LINE = "line"
    """Markers, joined in the order of x."""
    POINTS = "points"
    """Markers alone."""
    LIMIT = "limit"
    """A dashed line without markers: what nothing can exceed."""


class Series(msgspec.Struct, frozen=True):
    """Points that belong together, with a name for the legend."""

    name: str
    points: tuple[Point, ...]
    kind: SeriesKind = SeriesKind.LINE


class Plot(msgspec.Struct, frozen=True, tag="plot"):
    """Series on two axes; a linear axis begins at 0."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    caption: str = ""


class Card(msgspec.Struct, frozen=True, tag="card"):
    """Something that stands on its own: a finding, a verdict.

    Attributes:
        title: One line.
        tone: What it is.
        label: The tone in a word (``error``, ``advice`` …).
        ref: A stable id the reader can ask more about.
        blocks: Shown at once.
        details: Shown on request (folded in HTML, left out in the terminal).
        details_title: What the fold is called.
        folded: HTML shows the title alone until the reader opens it.
        brief: What a terminal prints after the title in place of the blocks, unless details are asked for.
    """

    title: str
    tone: Tone = Tone.PLAIN
    label: str = ""
    ref: str = ""
    blocks: tuple[Block, ...] = ()
    details: tuple[Block, ...] = ()
    details_title: str = "Why, evidence and sources"
    folded: bool = False
    brief: str = ""


class Option(msgspec.Struct, frozen=True):
    """Another way than a step's own.

    Attributes:
        label: When it is one: ``Or``, ``Until then`` …
        title: What it does.
        text: More about it, in Markdown.
        commands: Lines to copy.
        needs: As of a step.
        risk: As of a step.
        undo: As of a step.
    """

    label: str
    title: str
    text: str = ""
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    risk: str = ""
    undo: str = ""


class Step(msgspec.Struct, frozen=True):
    """One thing to do.

    Attributes:
        number: From 1; 0 where it has no place in the order.
        title: What to do, in one line.
        text: More about it, in Markdown.
        commands: Lines to copy.
        needs: ``root``, ``reboot``, ``reinstall`` …
        risk: How high it is, and what it is; empty where there is none.
        check: The command that shows afterwards whether it worked.
        check_when: When to check: ``Then``, ``After the reboot``.
        expect: What that prints then.
        undo: How to take it back, in Markdown.
        settles: Ids of the findings that it settles, or that it is about where it has no number.
        options: Other ways.
        serves: Whether it settles none of these by itself, but only serves to.
        by_hand: A person does it: a terminal always prints the text.
    """

    number: int
    title: str
    text: str = ""
    commands: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    risk: str = ""
    check: str = ""
    check_when: str = "Then"
    expect: str = ""
    undo: str = ""
    settles: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    serves: bool = False
    by_hand: bool = False

    @property
    def relation(self) -> str:
        """``Settles``, ``For`` or ``About``: what it is to the findings that it names."""
        return "For" if self.serves else "Settles" if self.number else "About"


class Steps(msgspec.Struct, frozen=True, tag="steps"):
    """Things to do, in order."""

    steps: tuple[Step, ...]


class Section(msgspec.Struct, frozen=True, tag="section"):
    """A titled part of a document.

    Attributes:
        title: One line.
        blocks: What is in it.
        tone: How it is meant.
        folded: HTML shows the title alone until the reader opens it.
        beside: HTML puts it right after the section before it; a terminal shows it last.
        detail: A terminal leaves it out, as it does details of cards.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    tone: Tone = Tone.PLAIN
    folded: bool = False
    beside: bool = False
    detail: bool = False


Picture = Bars | Ranges | Stacks | Topology | Timeline | Plot
"""Blocks that HTML draws; ``rocmend.report.pictures`` has their drawings and their tables."""

Block = (
    Text
    | Code
    | Links
    | Pairs
    | Table
    | Tiles
    | Bars
    | Ranges
    | Stacks
    | Topology
    | Timeline
    | Plot
    | Card
    | Steps
    | Section
)


class Document(msgspec.Struct, frozen=True):
    """A whole report.

    Attributes:
        title: What it is about.
        summary: The answer in a sentence or two, before anything else.
        tone: How good the answer is.
        blocks: The rest.
        footer: Printed last: what to do next, how it was made.
    """

    title: str
    summary: str = ""
    tone: Tone = Tone.PLAIN
    blocks: tuple[Block, ...] = ()
    footer: str = ""


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str | Cell]], caption: str = "", *, heat: bool = False, key: int = 0
) -> Table:
    """Build a table from plain strings and toned cells."""
    made = tuple(tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
    return Table(tuple(columns), made, caption, heat, key)
