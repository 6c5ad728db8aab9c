"""What is shown: a document with the input in every place of it, on a terminal, as Markdown or as HTML.

The first byte of an input says as which.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from fuzz.target import BrokenPromiseError, Target, choice
from rocmend.report import html, markdown, terminal
from rocmend.report.document import Card, Cell, Code, Document, Link, Links, Pairs, Section, Table, Text, Tone
from rocmend.report.visible import as_markdown, visible

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_EVENTS = re.compile(r"on\w+")


class _Page(HTMLParser):
    """Looks for anything of the input that a browser would run or fetch."""

    def __init__(self, own_scripts: int) -> None:
        super().__init__()
        self.scripts = -own_scripts

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if self.scripts > 0 or tag in {"iframe", "object", "embed", "base", "form"}:
            raise BrokenPromiseError(f"<{tag}> got into the page")
        if (tag, attrs) == ("link", [("rel", "icon"), ("href", "data:,")]):  # the page's own: no icon is asked for
            return
        for name, value in attrs:
            if _EVENTS.fullmatch(name):
                raise BrokenPromiseError(f"{name}= got into the page")
            if name in {"href", "src"} and not re.match(r"#|https?://|data:image/", value or "#"):
                raise BrokenPromiseError(f"{name}={value} got into the page")


def document(text: str) -> Document:
    """Return a document with a stranger's text in every place that takes one."""
    blocks = (
        Text(as_markdown(text)),
        Code(text, "text"),
        Links(text, (Link(text, text), Link("", text))),
        Pairs(((text, text, text),)),
        Table((text, text), ((Cell(text), Cell(text)),), caption=text),
        Card(text, Tone.ERROR, label=text, ref=text, blocks=(Code(text),), details=(Text(as_markdown(text)),)),
    )
    return Document(title=text, blocks=(Section(text, blocks),))


OWN_SCRIPTS = html.render(document("")).count("<script")


def _check(shown: str) -> None:
    if _STEERING.search(shown):
        raise BrokenPromiseError("a control character reached the output")


def on_a_terminal(data: bytes) -> None:
    """Print it to a terminal of 80 columns."""
    text = data.decode(errors="replace")
    _check(visible(text))
    stream = io.StringIO()
    terminal.render(document(text), stream, width=80)
    _check(stream.getvalue())


def as_a_text(data: bytes) -> None:
    """Write it as Markdown."""
    _check(markdown.render(document(data.decode(errors="replace"))))


def on_a_page(data: bytes) -> None:
    """Write it as HTML, and look for anything that a browser would run or fetch."""
    page = _Page(OWN_SCRIPTS)
    page.feed(html.render(document(data.decode(errors="replace"))))
    page.close()


def seeds() -> Iterator[bytes]:
    """Yield text that has steered terminals, Markdown and pages."""
    for text in (
        "\x1b[2J\x1b]0;title\x07",
        "\x9b31m a\rb",
        "\u202egnp.exe\u2066",
        "<script>alert(1)</script>",
        "![x](https://example.invalid/x.png) [a](javascript:alert(1))",
        '"><img src=x onerror=alert(1)>',
        "```\n~~~\n</pre>",
        "| a | b |\n|---|---|\n",
        "{{ 7*7 }} {% raw %} <!-- --> &lt; &#x3c;",
    ):
        for kind in range(3):
            yield bytes([kind]) + text.encode()


TARGET = Target(choice((on_a_terminal, as_a_text, on_a_page)), seeds, max_bytes=512)
