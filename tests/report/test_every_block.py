"""What holds for every kind of block: no text in it becomes markup, and all of it is redacted."""

from __future__ import annotations

import io
import re
from enum import Enum
from html.parser import HTMLParser
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from rocmend.core.redact import Redactor
from rocmend.report import document as model
from rocmend.report import html, markdown, terminal
from rocmend.report.document import Block, Document
from rocmend.report.redacted import redacted

KINDS: tuple[type[msgspec.Struct], ...] = get_args(Block)
HOSTILE = "</title></script></style>'\"><img src=x onerror=alert(1)><svg onload=alert(2)>"
PRIVATE = "/home/anna/box"
VOID = {"meta", "link", "img", "br", "hr", "input"}


def filled(kind: Any, text: str, depth: int = 0) -> Any:
    """Make a value of a type that holds the text in every place where a text can be."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        inner = arguments[:1] * 2 if arguments[-1] is Ellipsis else arguments
        return tuple(filled(one, text, depth) for one in inner)
    if origin is not None:  # of several kinds: a card once, so that what nests is tried, then text
        return filled(model.Card if depth == 0 else model.Text, text, depth + 1)
    if issubclass(kind, Enum):
        return list(kind)[2]
    if issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, vars(model))
        return kind(**{name: filled(hints[name], text, depth) for name in kind.__struct_fields__})
    return {str: text, bool: True, int: 1, float: 1.0}[kind]


def made(kind: type[msgspec.Struct], text: str) -> Document:
    block: Block = filled(kind, text)
    return Document("t", blocks=(block,))


class Tags(HTMLParser):
    """Which elements a page has, and whether they are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, frozenset[str]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, frozenset(name for name, _ in attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_in_it_becomes_markup(kind: type[msgspec.Struct]) -> None:
    plain, hostile = (parsed(html.render(made(kind, text))) for text in ("x", HOSTILE))
    assert set(hostile.seen) <= set(plain.seen)
    assert "<img src=x onerror=alert(1)>" in "".join(hostile.text)


@pytest.mark.parametrize("kind", KINDS)
def test_what_identifies_is_replaced_wherever_it_stands(kind: type[msgspec.Struct]) -> None:
    document = made(kind, f"see {PRIVATE} here")
    shown = redacted(document, Redactor(users=["anna"], hosts=["box"]))
    assert "anna" not in msgspec.json.encode(shown).decode()
    assert "anna" in msgspec.json.encode(document).decode()


@pytest.mark.parametrize("kind", ["Bar", "Device", "Range", "Tile"])
def test_what_a_value_is_called_says_that_it_is_a_secret(kind: str) -> None:
    struct = getattr(model, kind)
    value = msgspec.structs.replace(filled(struct, "x"), label="HF_TOKEN", text="plain-looking-words")
    holder: dict[str, Block] = {
        "Bar": model.Bars((value,)),
        "Tile": model.Tiles((value,)),
        "Range": model.Ranges((value,)),
    }
    block = holder.get(kind) or model.Topology((model.Host("h", (value,)),))
    assert "plain-looking" not in html.render(redacted(Document("t", blocks=(block,)), Redactor()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [50, 80])
def test_terminal_and_markdown_show_it_all(kind: type[msgspec.Struct], width: int) -> None:
    out = io.StringIO()
    terminal.render(made(kind, "word"), out, width=width, details=True)
    assert "word" in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "word" in re.sub(r"\s+", " ", markdown.render(made(kind, "word")))
