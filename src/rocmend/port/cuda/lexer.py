"""A lexer of CUDA C++ over bytes.

It is total: any bytes give tokens, and the tokens tile the file without gap or overlap. Nothing is decoded, so that a
source in any encoding that keeps ASCII keeps its bytes. Preprocessor directives are told apart from code: their tokens
carry the number of the directive, also over lines that are continued.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["BOM", "Directive", "Kind", "Lexed", "Token", "lexed"]

BOM = b"\xef\xbb\xbf"


class Kind:
    """Kinds of tokens: plain strings, so that comparing them costs nothing."""

    COMMENT = "comment"
    STRING = "string"
    CHARACTER = "character"
    NUMBER = "number"
    NAME = "name"
    PUNCTUATION = "punctuation"
    HEADER = "header"
    """What ``#include`` names, with its brackets or quotes."""
    MESSAGE = "message"
    """The words of ``#error`` and ``#warning``: no tokens of the language."""
    SPACE = "space"
    """Blanks, and line ends that a backslash takes away."""
    NEWLINE = "newline"
    OTHER = "other"
    """A byte that begins no token: a quote that nothing closes, a control character."""


class Token(NamedTuple):
    """A piece of the file.

    Attributes:
        kind: One of ``Kind``.
        start: Offset of its first byte.
        end: Offset after its last byte.
        line: Of its first byte, from 1.
        directive: Number of the preprocessor directive that it stands in, from 0; -1 in code.
        text: Its bytes, for names, numbers and punctuation; empty for the other kinds.
    """

    kind: str
    start: int
    end: int
    line: int
    directive: int
    text: bytes


class Directive(NamedTuple):
    """A preprocessor directive with the lines that continue it.

    Attributes:
        name: ``include``, ``define``, ``if`` …; empty for a lone ``#``.
        start: Offset of its line (of the blanks before ``#``).
        end: Offset after its last line's end.
        line: Its first line, from 1.
        first: Index of its first significant token in ``Lexed.tokens`` (the ``#``).
        last: Index after its last one.
    """

    name: bytes
    start: int
    end: int
    line: int
    first: int
    last: int


class Lexed(NamedTuple):
    """What the lexer found.

    Attributes:
        tokens: Without blanks, line ends and comments, in order.
        comments: The comments, in order.
        spaces: Blanks and line ends; with the other two they tile the file. Empty unless asked for.
        directives: In order.
        line_starts: Offsets of the lines' first bytes.
    """

    tokens: list[Token]
    comments: list[Token]
    spaces: list[Token]
    directives: list[Directive]
    line_starts: list[int]


_SPLICE = rb"\\[ \t]*\r?\n"
_RAW = rb"""(?P<string>(?:u8|[uUL])?R"(?P<mark>[^ ()\\\t\v\f\r\n]{0,16})\(.*?\)(?P=mark)"
      |"""
_REST = rb"""(?:u8|[uUL])?"(?:[^"\\\r\n]|\\(?:[ \t]*\r?\n|.))*")
  | (?P<name>[A-Za-z_$\x80-\xff][A-Za-z0-9_$\x80-\xff]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
  | (?P<character>'(?:[^'\\\r\n]|\\(?:[ \t]*\r?\n|.))+')
  | (?P<punctuation><<<|>>>|<<=|>>=|\.\.\.|->\*|<=>|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|\.\*
      |[-+*/%&|^~!<>=?:;,.(){}\[\]\#@])
  | (?P<other>.)
    """
_BLANKS = (
    rb"""
    (?P<space>(?:[ \t\f\v]|\r(?!\n)|"""
    + _SPLICE
    + rb""")+)
  | (?P<newline>\r?\n)
  | (?P<comment>//(?:[^\\\n]+|"""
    + _SPLICE
    + rb"""|\\)*|/\*.*?(?:\*/|\Z))
  | """
)
_MASTER = re.compile(_BLANKS + _RAW + _REST, re.VERBOSE | re.DOTALL)
_WITHOUT_RAW = re.compile(_BLANKS + rb"(?P<string>" + _REST, re.VERBOSE | re.DOTALL)
"""For sources with many raw strings that never end: each look for an end reads the rest of the file."""
_RAW_PREFIXES = frozenset((b"R", b"u8R", b"uR", b"UR", b"LR"))
_MOST_OPEN = 32
_PREFIXED = re.compile(rb"(?:u8|[uUL])'(?:[^'\\\r\n]|\\(?:[ \t]*\r?\n|.))+'", re.DOTALL)
_HEADER = re.compile(rb"""<[^>\r\n]*>|"[^"\r\n]*\"""")
_MESSAGE = re.compile(rb"(?:[^\\\r\n/]|" + _SPLICE + rb"|\\|/(?![*/])|\r(?!\n))+")
_INCLUDES = frozenset((b"include", b"include_next", b"import"))
_MESSAGES = frozenset((b"error", b"warning"))
_NEW_LINES = re.compile(rb"\n")


def lexed(data: bytes, *, spaces: bool = False) -> Lexed:  # noqa: C901, PLR0912, PLR0915  one pass, kept in one piece
    """Return the tokens of a source.

    Args:
        data: Any bytes.
        spaces: Keep blanks and line ends too, so that the tokens tile the file.
    """
    tokens: list[Token] = []
    comments: list[Token] = []
    blanks: list[Token] = []
    directives: list[Directive] = []
    match = _MASTER.match
    at, size, line, open_raw = 0, len(data), 1, 0
    open_quotes, quotes_line = 0, 0
    if data.startswith(BOM):
        at = len(BOM)
        if spaces:
            blanks.append(Token(Kind.SPACE, 0, at, 1, -1, b""))
    fresh = True  # only blanks and comments so far in this logical line
    inside = -1
    name, expects = b"", ""  # of the directive; what its next token is read as
    opened = (0, 1, 0)  # start of its line, line, first token
    logical_start, logical_line = at, 1
    while at < size:
        found = None
        kind = ""
        if expects:
            if expects == Kind.HEADER:
                found = _HEADER.match(data, at)
                kind = Kind.HEADER
            elif expects == Kind.MESSAGE:
                found = _MESSAGE.match(data, at)
                kind = Kind.MESSAGE
            if found is None:
                kind = ""
        if found is None:
            found = match(data, at)
            assert found is not None  # noqa: S101  the last alternative takes any byte
            kind = found.lastgroup or ""
            if kind == "mark":
                kind = Kind.STRING
        end = found.end()
        if kind == Kind.NAME:
            prefixed = _PREFIXED.match(data, at) if end < size and data[end] == 0x27 else None
            if prefixed:
                end = prefixed.end()
                tokens.append(Token(Kind.CHARACTER, at, end, line, inside, b""))
            else:
                text = data[at:end]
                if text in _RAW_PREFIXES and data[end : end + 1] == b'"':
                    open_raw += 1
                    match = match if open_raw < _MOST_OPEN else _WITHOUT_RAW.match
                tokens.append(Token(Kind.NAME, at, end, line, inside, text))
                if inside >= 0 and expects == "name":
                    name = text
                    expects = Kind.HEADER if text in _INCLUDES else Kind.MESSAGE if text in _MESSAGES else ""
                    at = end
                    continue
            fresh = False
            expects = ""
        elif kind == Kind.SPACE:
            if spaces:
                blanks.append(Token(Kind.SPACE, at, end, line, inside, b""))
            line += data.count(b"\n", at, end)
        elif kind in (Kind.PUNCTUATION, Kind.NUMBER):
            text = data[at:end]
            if fresh and text == b"#":
                inside = len(directives)
                name, expects = b"", "name"
                opened = (logical_start, logical_line, len(tokens))
            else:
                expects = ""
            tokens.append(Token(kind, at, end, line, inside, text))
            fresh = False
        elif kind == Kind.NEWLINE:
            if inside >= 0:
                directives.append(Directive(name, opened[0], end, opened[1], opened[2], len(tokens)))
                inside, expects = -1, ""
            if spaces:
                blanks.append(Token(Kind.NEWLINE, at, end, line, -1, b""))
            line += 1
            fresh = True
            logical_start, logical_line = end, line
        elif kind == Kind.COMMENT:
            comments.append(Token(Kind.COMMENT, at, end, line, inside, b""))
            crossed = data.count(b"\n", at, end)
            line += crossed
        else:
            if kind == Kind.OTHER and data[at] in b"\"'":  # it is never closed: each look for that reads the line
                open_quotes = open_quotes + 1 if line == quotes_line else 1
                quotes_line = line
                if open_quotes > _MOST_OPEN:
                    stop = data.find(b"\n", at)
                    end = size if stop < 0 else stop
            tokens.append(Token(kind, at, end, line, inside, b""))
            line += data.count(b"\n", at, end)
            fresh = False
            expects = ""
        at = end
    if inside >= 0:
        directives.append(Directive(name, opened[0], size, opened[1], opened[2], len(tokens)))
    starts = [0, *(one.end() for one in _NEW_LINES.finditer(data))]
    return Lexed(tokens, comments, blanks, directives, starts)
