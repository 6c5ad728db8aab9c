"""The lexer: total, tiling, and right about what is code and what is not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.port.cuda.lexer import Kind, lexed

PIECES = st.sampled_from(
    [b"a", b"__shfl_sync", b"0x1F'ull", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\\\n", b"\\ \r\n", b'"', b"'", b"\\",
     b"//", b"/*", b"*/", b'R"(', b')"', b'R"x(', b')x"', b"#", b"#define F(x) ", b"#include <a>", b"#error it's",
     b"#if 1", b"#endif", b"<<<", b">>>", b"(", b")", b"{", b"}", b"\xef\xbb\xbf", b"\xff", b"\x00",
     b"1.5e-3f", b";", b"u8'c'"]
)  # fmt: skip
SOURCES = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=60).map(b"".join))


@given(SOURCES)
def test_tokens_tile_the_file(data: bytes) -> None:
    found = lexed(data, spaces=True)
    every = sorted(found.tokens + found.comments + found.spaces, key=lambda token: token.start)
    assert all(token.start < token.end for token in every)
    assert all(one.end == other.start for one, other in pairwise(every))
    assert (every[0].start if every else 0) == 0
    assert (every[-1].end if every else 0) == len(data)
    for token in every:
        assert token.line == data.count(b"\n", 0, token.start) + 1
        assert not token.text or token.text == data[token.start : token.end]


@given(SOURCES)
def test_directives_hold_their_tokens(data: bytes) -> None:
    found = lexed(data)
    for number, directive in enumerate(found.directives):
        assert {one.directive for one in found.tokens[directive.first : directive.last]} == {number}
        assert found.tokens[directive.first].text == b"#"
        assert directive.end == len(data) or data[: directive.end].endswith(b"\n")
    held = sum(one.last - one.first for one in found.directives)
    assert held == sum(token.directive >= 0 for token in found.tokens)


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        (b"// a \\\n b\nc", [(Kind.COMMENT, b"// a \\\n b"), (Kind.NAME, b"c")]),
        (b"/* a\n*/b", [(Kind.COMMENT, b"/* a\n*/"), (Kind.NAME, b"b")]),
        (b'R"x(")")x" y', [(Kind.STRING, b'R"x(")")x"'), (Kind.NAME, b"y")]),
        (b'"a\\"//b" c', [(Kind.STRING, b'"a\\"//b"'), (Kind.NAME, b"c")]),
        (b"1'000u x", [(Kind.NUMBER, b"1'000u"), (Kind.NAME, b"x")]),
        (b"L'\\''", [(Kind.CHARACTER, b"L'\\''")]),
        (b"k<<<1>>>", [(Kind.NAME, b"k"), (Kind.PUNCTUATION, b"<<<"), (Kind.NUMBER, b"1"), (Kind.PUNCTUATION, b">>>")]),
    ],
)
def test_kinds(source: bytes, kinds: list[tuple[str, bytes]]) -> None:
    found = lexed(source)
    every = sorted(found.tokens + found.comments, key=lambda token: token.start)
    assert [(token.kind, source[token.start : token.end]) for token in every] == kinds


def test_words_of_an_error_are_no_code() -> None:
    source = b"#error don't /* a\n b */ stop\nint x;\n"
    found = lexed(source)
    assert [source[one.start : one.end] for one in found.tokens if one.directive < 0] == [b"int", b"x", b";"]


def test_directive_reaches_over_continuations_and_comments() -> None:
    source = b"#define F(x) \\\n  g(x) /* \n */ + 1\nint y;"
    (directive,) = lexed(source).directives
    assert source[directive.start : directive.end] == b"#define F(x) \\\n  g(x) /* \n */ + 1\n"


def test_raw_strings_that_never_end_cost_no_more() -> None:
    data = b'R"(' * 20000
    assert len(lexed(data).tokens) == 30000  # R, "(R", ( for every two


def test_hash_inside_a_line_is_no_directive() -> None:
    assert [one.name for one in lexed(b"#define S(x) #x\na # if\n").directives] == [b"define"]
