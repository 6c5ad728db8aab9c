"""Render a document as one self-contained HTML page: no network, light and dark, readable on a phone.

The page is whole without script. Its policy names the hashes of its one style and its one script: nothing else is
applied or run, whatever is in it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

from markupsafe import Markup

from rocmend import __version__
from rocmend.report.document import Block, Card, Document, Picture, Section, Table
from rocmend.report.pictures.draw import draw
from rocmend.report.pictures.tables import table_of
from rocmend.report.visible import as_markdown, visible_in

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt


def render(document: Document) -> str:
    """Return the document as HTML text."""
    document = visible_in(document)
    environment = _environment()
    sections = [block for block in document.blocks if isinstance(block, Section)]
    ids = _Ids(document)
    macros = environment.get_template("blocks.html.j2").make_module({"ids": ids})

    def block_html(block: Block, level: int) -> Markup:
        return Markup(macros.block(block, level))  # type: ignore[attr-defined]  # noqa: S704  the template escapes

    style, style_hash = _asset("style.css")
    script, script_hash = _asset("report.js")
    return environment.get_template("report.html.j2").render(
        document=document,
        sections=[{"title": section.title, "anchor": ids.of(section)} for section in sections],
        version=__version__,
        mark=Markup(MARK.decode()),  # noqa: S704  our own
        style=style,
        style_hash=style_hash,
        script=script,
        script_hash=script_hash,
        render=block_html,
    )


class _Ids:
    """The ids of a page: each is given once, and a link leads somewhere."""

    def __init__(self, document: Document) -> None:
        self._counts = dict.fromkeys(("main", "tools", "find"), 1)
        self._of: dict[int, str] = {}
        self._find(document.blocks)

    def _find(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if isinstance(block, Section):
                self._of.setdefault(id(block), self.new(block.title))
            elif isinstance(block, Card) and block.ref:
                self._of.setdefault(id(block), self.new(block.ref))
        for block in blocks:
            if isinstance(block, Section | Card):
                self._find((*block.blocks, *(block.details if isinstance(block, Card) else ())))

    def new(self, text: str) -> str:
        """Return an id for a text that no other has."""
        name = anchor(text)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return name if count == 1 else self.new(f"{name}-{count}")

    def of(self, block: Section | Card) -> str:
        """Return the id of a block of the document."""
        return self._of[id(block)]

    def known(self, text: str) -> str:
        """Return the id that a text leads to; empty where there is none."""
        return name if (name := anchor(text)) in self._counts else ""


_WRAPPED = frozenset({"", "sh", "bash", "fish", "powershell"})
"""Languages whose long lines are broken where they end: commands and output, to be read whole, where the columns of
source text say something."""

MARK = b'<meta name="generator" content="rocmend '
"""What is in the first lines of every report, and tells it from other files."""


@cache
def _asset(name: str) -> tuple[Markup, str]:
    """Return a file of ours as it stands in the page, and its hash for the page's policy."""
    text = resources.files("rocmend.report").joinpath("templates", name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"sha256-{digest}"  # noqa: S704  our own file


def anchor(text: str) -> str:
    """Return an id for a heading: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rocmend.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["groupby_run"] = _runs
    environment.globals.update(
        markdown=_markdown,
        inline=_inline,
        kept=kept,
        dense=_dense,
        ticked=_ticked,
        wraps=_WRAPPED.__contains__,
        anchor=anchor,
        kind_of=lambda item: type(item).__name__,
        web=_is_web_address,
        pictures={kind.__name__ for kind in get_args(Picture)},
        draw=draw,
        table_of=table_of,
    )
    return environment


def _runs(blocks: Sequence[Block]) -> list[tuple[bool, list[Block]]]:
    """Return blocks in runs, each with whether it is of several pictures, to be put side by side."""
    runs = [list(run) for _, run in groupby(blocks, lambda block: isinstance(block, Picture))]
    return [(len(run) > 1 and isinstance(run[0], Picture), run) for run in runs]


def _is_web_address(url: str) -> bool:
    """Whether a source's address is one to link to: a report must not carry ``javascript:`` from a data file."""
    return urlsplit(url).scheme in {"http", "https"}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


_SHORT = 18
"""Characters of a cell that needs no room for prose."""
_SHARE = re.compile(r"(?<=\d) (?=%)|(?<=[\d*]) (?=→ \d)|(?<=→) (?=\d)")


def kept(text: str) -> str:
    """Return a text in which no line ends between a number and its per cent sign, or in ``1 → 2``."""
    return _SHARE.sub("\u00a0", text)


def _dense(block: Table) -> bool:
    """Return whether a table holds no more than a word or a figure in each cell beside its rows' names."""
    return all(len(cell.text) <= _SHORT for row in block.rows for cell in row[1:])


def _markdown(text: str) -> Markup:
    return Markup(_parser().render(kept(text)))  # noqa: S704  raw HTML is off in the parser


def _ticked(text: str) -> str:
    """Return the text of a cell; what stands in ticks is code."""
    return _inline(text) if "`" in text else kept(text)


def _inline(text: str) -> Markup:
    """Return plain text of one line as HTML; what stands in ticks is code, anything else is as it is."""
    return Markup(_parser().renderInline(as_markdown(text)))  # noqa: S704  raw HTML is off in the parser
