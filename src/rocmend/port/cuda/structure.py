"""Brackets, calls and launches, from tokens alone.

Directives are a world of their own: a bracket in a macro's body never matches one outside of it. Where the branches of
a conditional open the same bracket twice (two heads of one function), each branch starts from what was open before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rocmend.port.cuda.lexer import Directive, Kind, Token
from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = [
    "Argument",
    "Call",
    "Launch",
    "arguments",
    "call_at",
    "launch_at",
    "matched",
    "template_end",
    "template_start",
]

_CLOSES = {b")": b"(", b"]": b"[", b"}": b"{"}
_OPENS = frozenset(_CLOSES.values())


class Argument(NamedTuple):
    """One argument: the bytes from its first to its last token, and the tokens' indices (``last`` is one after)."""

    start: int
    end: int
    first: int
    last: int


class Call(NamedTuple):
    """A name with arguments in brackets.

    Attributes:
        name: The last part of the called name.
        at: Index of the name among the tokens.
        start: Offset of the call's first byte, with ``std::`` and the like before the name.
        end: Offset after its closing bracket.
        opened: Index of the opening bracket.
        closed: Index of the closing bracket.
        template: The template arguments.
        args: The arguments; empty for ``f()``.
        qualifier: What stands before the name: ``std::``, ``x.``, ``p->``; empty where nothing does.
        declares: Whether it looks like a declaration or definition of the name, not a use.
    """

    name: Token
    at: int
    start: int
    end: int
    opened: int
    closed: int
    template: tuple[Argument, ...]
    args: tuple[Argument, ...]
    qualifier: bytes
    declares: bool


class Launch(NamedTuple):
    """A kernel launch with the triple chevrons.

    Attributes:
        start: Offset of the kernel's name (with its qualification).
        end: Offset after the closing bracket of the arguments.
        kernel: The kernel, with template arguments: indices of its tokens are ``kernel.first`` to ``kernel.last``.
        config: Grid, block, dynamic LDS, stream: as many as are given.
        args: The kernel's arguments.
    """

    start: int
    end: int
    kernel: Argument
    config: tuple[Argument, ...]
    args: tuple[Argument, ...]


def matched(tokens: Sequence[Token], directives: Sequence[Directive]) -> dict[int, int]:
    """Return the index of the partner of every bracket that has one, both ways.

    Raises:
        NestingError: More than ``MOST_NESTED`` are open at once, also where nothing ever closes them.
    """
    partner: dict[int, int] = {}
    stack: list[int] = []
    saved: list[list[int]] = []
    own: list[int] = []
    current = -1
    for index, token in enumerate(tokens):
        if token.directive != current:
            current = token.directive
            own = []
            if current >= 0:
                stack = _at_condition(directives[current].name, stack, saved)
        if token.kind != Kind.PUNCTUATION:
            continue
        text = token.text
        used = own if current >= 0 else stack
        if text in _OPENS:
            used.append(index)
            if len(used) > MOST_NESTED:
                raise NestingError("brackets")
        elif text in _CLOSES:
            opened = _CLOSES[text]
            # A closing bracket that fits something further out closes it: what lies between was never closed.
            for depth in range(len(used) - 1, max(-1, len(used) - 9), -1):
                if tokens[used[depth]].text == opened:
                    partner[index] = used[depth]
                    partner[used[depth]] = index
                    del used[depth:]
                    break
    return partner


def _at_condition(name: bytes, stack: list[int], saved: list[list[int]]) -> list[int]:
    if name in (b"if", b"ifdef", b"ifndef"):
        saved.append(list(stack))
        if len(saved) > MOST_NESTED:
            raise NestingError("conditionals")
    elif name in (b"else", b"elif", b"elifdef", b"elifndef") and saved:
        return list(saved[-1])
    elif name == b"endif" and saved:
        saved.pop()
    return stack


def arguments(tokens: Sequence[Token], partner: Mapping[int, int], opened: int, closed: int) -> tuple[Argument, ...]:
    """Return what commas part between two brackets (or chevrons); commas of template arguments do not count."""
    found: list[Argument] = []
    first = index = opened + 1
    world = tokens[opened].directive
    while index <= closed:
        token = tokens[index]
        if token.directive != world:
            index += 1
            continue
        if index == closed or (token.kind == Kind.PUNCTUATION and token.text == b","):
            inner = [at for at in (first, index - 1) if first <= index - 1]
            if inner:
                found.append(Argument(tokens[first].start, tokens[index - 1].end, first, index))
            elif index != closed or found:
                found.append(Argument(token.start, token.start, index, index))
            first = index + 1
        elif token.kind == Kind.PUNCTUATION:
            if token.text in _OPENS and index in partner and partner[index] < closed:
                index = partner[index]
            elif token.text == b"<" and tokens[index - 1].kind == Kind.NAME:
                end = template_end(tokens, partner, index)
                if 0 <= end < closed:
                    index = end
        index += 1
    return tuple(found)


_NOT_IN_TEMPLATES = frozenset(
    (b";", b"{", b"}", b"&&", b"||", b"=", b"==", b"!=", b"+=", b"-=", b"?", b"<<<", b"<=", b">=")
)
_LONGEST_TEMPLATE = 400
_DEEPEST_TEMPLATE = 32


def template_end(tokens: Sequence[Token], partner: Mapping[int, int], opened: int) -> int:
    """Return the index of the token that closes template arguments opened at ``<``; -1 where it is no such list."""
    depth = 0
    index = opened
    world = tokens[opened].directive
    stop = min(len(tokens), opened + _LONGEST_TEMPLATE)
    while index < stop:
        token = tokens[index]
        if token.directive != world:
            return -1
        if token.kind == Kind.PUNCTUATION:
            text = token.text
            if text == b"<":
                depth += 1
                if depth > _DEEPEST_TEMPLATE:
                    return -1
            elif text in (b">", b">>", b">>>"):
                depth -= len(text)
                if depth <= 0:
                    return index if depth == 0 else -1
            elif text in (b"(", b"["):
                if index not in partner:
                    return -1
                index = partner[index]
            elif text in _NOT_IN_TEMPLATES or text in (b")", b"]"):
                return -1
        index += 1
    return -1


_TAKES_EXPRESSION = frozenset(
    (
        b"return",
        b"else",
        b"do",
        b"case",
        b"throw",
        b"co_return",
        b"and",
        b"or",
        b"not",
        b"goto",
        b"typename",
        b"new",
        b"delete",
        b"sizeof",
    )
)


def call_at(tokens: Sequence[Token], partner: Mapping[int, int], index: int) -> Call | None:
    """Return the call whose name stands at ``index``; None where no call begins there."""
    token = tokens[index]
    world = token.directive
    at = index + 1
    template: tuple[Argument, ...] = ()
    if at < len(tokens) and tokens[at].text == b"<" and tokens[at].directive == world:
        end = template_end(tokens, partner, at)
        if end < 0:
            return None
        template = arguments(tokens, partner, at, end)
        at = end + 1
    if at >= len(tokens) or tokens[at].text != b"(" or tokens[at].directive != world or at not in partner:
        return None
    closed = partner[at]
    first = index
    while first >= 1 and tokens[first - 1].directive == world:
        before = tokens[first - 1].text
        if before == b"::":
            first -= 1
            if first >= 1 and tokens[first - 1].kind == Kind.NAME and tokens[first - 1].directive == world:
                first -= 1
            continue
        break
    qualifier = b"".join(one.text for one in tokens[first:index])
    declares = False
    previous = tokens[first - 1] if first >= 1 and tokens[first - 1].directive == world else None
    if previous is not None:
        if previous.text in (b".", b"->"):
            qualifier = previous.text + qualifier
        elif previous.kind == Kind.NAME:
            declares = previous.text not in _TAKES_EXPRESSION and not _is_macro_name(tokens, first - 1)
        elif previous.text in (b"*", b"&", b">"):
            declares = closed + 1 < len(tokens) and tokens[closed + 1].text == b"{"
    return Call(
        token,
        index,
        tokens[first].start,
        tokens[closed].end,
        at,
        closed,
        template,
        arguments(tokens, partner, at, closed),
        qualifier,
        declares,
    )


def _is_macro_name(tokens: Sequence[Token], index: int) -> bool:
    return (
        tokens[index].directive >= 0
        and index >= 2
        and tokens[index - 1].text == b"define"
        and tokens[index - 2].text == b"#"
    )


def launch_at(tokens: Sequence[Token], partner: Mapping[int, int], index: int) -> Launch | None:
    """Return the launch whose ``<<<`` stands at ``index``; None where it is none."""
    world = tokens[index].directive
    closed = index + 1
    while closed < len(tokens) and tokens[closed].text != b">>>":
        token = tokens[closed]
        if token.directive != world:
            if world >= 0:
                return None
        elif token.text in _OPENS:
            if closed not in partner:
                return None
            closed = partner[closed]
        elif token.text in (b";", b"}", b")", b"<<<"):
            return None
        closed += 1
    opened = closed + 1
    if opened >= len(tokens) or tokens[opened].text != b"(" or opened not in partner:
        return None
    first = index - 1
    if first >= 0 and tokens[first].text == b">":
        first = template_start(tokens, first)
    elif first >= 0 and tokens[first].text == b")" and first in partner:
        first = partner[first]
    while first >= 2 and tokens[first - 1].text == b"::":
        first -= 2
    if first < 0 or tokens[first].directive != world:
        return None
    return Launch(
        tokens[first].start,
        tokens[partner[opened]].end,
        Argument(tokens[first].start, tokens[index - 1].end, first, index),
        arguments(tokens, partner, index, closed),
        arguments(tokens, partner, opened, partner[opened]),
    )


def template_start(tokens: Sequence[Token], closed: int) -> int:
    """Return the index of the name whose template arguments end at an index; that index where there is none."""
    depth = 0
    index = closed
    while index >= 0 and index > closed - _LONGEST_TEMPLATE:
        text = tokens[index].text
        if text in (b">", b">>", b">>>"):
            depth += len(text)
        elif text == b"<":
            depth -= 1
            if depth == 0:
                return index - 1
        elif text in (b";", b"{", b"}"):
            break
        index -= 1
    return closed
