"""The statements of a function, from tokens: branches, loops and blocks, and nothing about what else they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.declarations import Macro
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.asked import ask

__all__ = ["Statement", "hides_its_condition", "statement_at", "statements", "walk"]

_BEFORE_BODY = frozenset((b")", b"]", b"mutable", b"noexcept", b"const"))
_NO_LABELS = frozenset((b"default", b"public", b"protected", b"private"))
_NO_MACROS = frozenset(b"asm __asm__ catch alignas sizeof decltype noexcept operator".split())
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
        keyword: ``if``, ``while``, ``for``, ``do`` and the like; ``macro`` where a macro makes it one, which is its
            condition then; for others the first token's text.
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


def hides_its_condition(file: CudaFile, one: Statement) -> bool:
    """Tell whether a macro that the file does not define makes a statement a branch or a loop."""
    hides = one.keyword == b"macro" and file.tokens[one.first].text not in file.macros
    if hides:
        ask(file, file.tokens[one.first].text)
    return hides


def statement_at(file: CudaFile, index: int) -> Statement | None:
    """Return the statement whose first token stands at an index; None at the file's end."""
    reader = _Reader(file)
    first = reader.after(index)
    return reader.statement(first, len(file.tokens)) if first < len(file.tokens) else None


class _Reader:
    def __init__(self, file: CudaFile) -> None:
        self.tokens = file.tokens
        self.partner = file.partner
        self.macros = file.macros

    def after(self, index: int) -> int:
        """Return the first index from ``index`` on that stands in code, not in a directive."""
        while index < len(self.tokens) and self.tokens[index].directive >= 0:
            index += 1
        return index

    def text(self, index: int) -> bytes:
        return self.tokens[index].text if index < len(self.tokens) else b""

    def block(self, opened: int) -> Statement:
        closed = self.partner[opened]
        parts: list[Statement] = []
        at = self.after(opened + 1)
        while at < closed:
            hides = self.text(at) == b"else" and parts and parts[-1].kind == "plain" and self.is_name(parts[-1].first)
            if self.text(at) == b"else" and not hides:  # the other branch of a directive has the `if`
                at = self.after(at + 1)
                continue
            one = self.without_if(parts.pop(), at, closed) if hides else self.statement(at, closed)
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
        after = self.controlled(at)
        return self.hidden(at, after, limit) if after > 0 else self.plain(at, limit)

    def is_name(self, at: int) -> bool:
        return self.tokens[at].kind == Kind.NAME

    def controlled(self, at: int) -> int:
        """Return the index after a macro that makes a branch or a loop of what follows it; -1 where none stands."""
        if not self.is_name(at):
            return -1
        name, end = self.text(at), at + 1
        known = [one for one in self.macros.get(name, ()) if self.is_open(one)]
        if self.text(end) == b"(" and end in self.partner and not any(one.parameters is None for one in known):
            end = self.partner[end] + 1
        follows = end > at + 1 and self.text(self.after(end)) == b"{" and name not in _NO_MACROS
        return end if known or follows else -1

    def is_open(self, macro: Macro) -> bool:
        """Tell whether a macro's body ends with a condition, or an ``else``: a statement has to follow it."""
        words = [token.text for token in self.tokens[macro.first : macro.last]]
        return words[-1:] in ([b")"], [b"else"]) and words[0] in (b"if", b"for", b"while", b"switch", b"else")

    def hidden(self, at: int, end: int, limit: int) -> Statement:
        """Return the statement that a macro before it makes a branch or a loop of."""
        parts = [self.statement(self.after(end), limit)]
        other = self.after(parts[0].last)
        if other < limit and self.text(other) == b"else":
            parts.append(self.statement(self.after(other + 1), limit))
        branches = any(self.text(one.first) == b"if" for one in self.macros.get(self.text(at), ()))
        kind = "if" if branches or len(parts) > 1 else "loop"
        return Statement(kind, at, parts[-1].last, (at, end), tuple(parts), b"macro")

    def without_if(self, before: Statement, at: int, limit: int) -> Statement:
        """Return the branch of a statement and an ``else`` after it whose ``if`` a macro hides."""
        body = self.statement(self.after(at + 1), limit)
        return Statement("if", before.first, body.last, (before.first, before.first + 1), (before, body), b"macro")

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
                if text == b"{" and self.text(self.after(at)) == b"else":
                    break
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
