"""The statements of a function, from tokens: branches, loops and blocks, and nothing about what else they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind

__all__ = ["Statement", "statement_at", "statements", "walk"]

_BEFORE_BODY = frozenset((b")", b"]", b"mutable", b"noexcept", b"const"))
_NO_LABELS = frozenset((b"default", b"public", b"protected", b"private"))
_JUMPS = frozenset((b"return", b"break", b"continue", b"goto", b"throw"))


class Statement(NamedTuple):
    """A statement.

    Attributes:
        kind: ``if``, ``loop``, ``switch``, ``block`` or ``plain``.
        first: Index of its first token.
        last: Index after its last one.
        condition: Indices of the tokens of its condition (``first``, ``last``); None where it has none.
        parts: Of an ``if`` the branches, of a loop and a ``switch`` the body, of a block its statements, of a plain one
            the bodies of lambdas in it.
        keyword: ``if``, ``while``, ``for``, ``do`` and the like; for others the first token's text.
    """

    kind: str
    first: int
    last: int
    condition: tuple[int, int] | None
    parts: tuple[Statement, ...]
    keyword: bytes

    @property
    def leaves(self) -> bool:
        """Whether it ends by going elsewhere, so that what follows it is for the others."""
        if self.kind == "block":
            return bool(self.parts) and self.parts[-1].leaves
        return self.kind == "plain" and self.keyword in _JUMPS


def walk(statement: Statement) -> Iterator[Statement]:
    """Yield a statement and everything inside it, outer ones first."""
    yield statement
    for part in statement.parts:
        yield from walk(part)


def statements(file: CudaFile, function: Function) -> Statement | None:
    """Return the body of a function as a block; None where its brackets are not understood."""
    opened = file.token_at(function.start)
    if opened not in file.partner:
        return None
    return _Reader(file).block(opened)


def statement_at(file: CudaFile, index: int) -> Statement | None:
    """Return the statement whose first token stands at an index; None at the file's end."""
    reader = _Reader(file)
    first = reader.after(index)
    return reader.statement(first, len(file.tokens)) if first < len(file.tokens) else None


class _Reader:
    def __init__(self, file: CudaFile) -> None:
        self.tokens = file.tokens
        self.partner = file.partner

    def after(self, index: int) -> int:
        """Return the first index from ``index`` on that stands in code, not in a directive."""
        while index < len(self.tokens) and self.tokens[index].directive >= 0:
            index += 1
        return index

    def text(self, index: int) -> bytes:
        return self.tokens[index].text if index < len(self.tokens) else b""

    def block(self, opened: int) -> Statement:
        closed = self.partner[opened]
        parts = []
        at = self.after(opened + 1)
        while at < closed:
            one = self.statement(at, closed)
            parts.append(one)
            at = self.after(max(one.last, at + 1))
        return Statement("block", opened, closed + 1, None, tuple(parts), b"{")

    def statement(self, at: int, limit: int) -> Statement:
        text = self.text(at)
        if text == b"{" and at in self.partner:
            return self.block(at)
        if text in (b"if", b"while", b"for", b"switch"):
            return self.headed(at, limit, text)
        if text == b"do":
            return self.do(at, limit)
        colon = self.after(at + 1)
        if self.tokens[at].kind == Kind.NAME and text not in _NO_LABELS and self.text(colon) == b":":
            body = self.after(colon + 1)  # a label belongs to what follows it
            return self.statement(body, limit) if body < limit else Statement("plain", at, body, None, (), b":")
        if text in (b"case", b"default"):
            while at < limit and self.text(at) != b":":
                at = self.after(at + 1)
            return Statement("plain", at, at + 1, None, (), b":")
        return self.plain(at, limit)

    def headed(self, at: int, limit: int, keyword: bytes) -> Statement:
        opened = self.after(at + 1)
        constant = self.text(opened) in (b"constexpr", b"likely", b"unlikely")
        if constant:
            opened = self.after(opened + 1)
        if self.text(opened) != b"(" or opened not in self.partner:
            return self.plain(at, limit)
        closed = self.partner[opened]
        body = self.statement(self.after(closed + 1), limit)
        parts = [body]
        last = body.last
        if keyword == b"if":
            other = self.after(last)
            if other < limit and self.text(other) == b"else":
                parts.append(self.statement(self.after(other + 1), limit))
                last = parts[-1].last
        kind = {b"if": "if", b"switch": "switch"}.get(keyword, "loop")
        condition = None if constant else (opened + 1, closed)
        return Statement(kind, at, last, condition, tuple(parts), b"if constexpr" if constant else keyword)

    def do(self, at: int, limit: int) -> Statement:
        body = self.statement(self.after(at + 1), limit)
        keyword = self.after(body.last)
        opened = self.after(keyword + 1)
        if self.text(keyword) != b"while" or opened not in self.partner:
            return Statement("loop", at, body.last, None, (body,), b"do")
        closed = self.partner[opened]
        end = self.after(closed + 1)
        last = end + 1 if self.text(end) == b";" else closed + 1
        return Statement("loop", at, last, (opened + 1, closed), (body,), b"do")

    def plain(self, at: int, limit: int) -> Statement:
        first = at
        bodies: list[Statement] = []
        while at < limit:
            text = self.text(at)
            if text == b";":
                at += 1
                break
            if text in (b"(", b"[", b"{") and at in self.partner:
                bodies += self.lambdas(at)
                at = self.partner[at] + 1
            else:
                at += 1
            at = self.after(at)
        return Statement("plain", first, max(at, first + 1), None, tuple(bodies), self.text(first))

    def lambdas(self, opened: int) -> list[Statement]:
        """Return the bodies of lambdas, and of local classes' functions, from a bracket to the one that closes it."""
        found = []
        at = opened
        while at < self.partner[opened]:
            if self.text(at) == b"{" and at in self.partner and self.text(at - 1) in _BEFORE_BODY:
                found.append(self.block(at))
                at = self.partner[at]
            at += 1
        return found
