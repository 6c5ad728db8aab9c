"""Macros and declarations, from tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rocmend.port.cuda.lexer import Directive, Kind, Token
from rocmend.port.cuda.outline import NO_TYPES, Outline
from rocmend.port.cuda.structure import Argument, template_end

__all__ = ["Declaration", "Macro", "declared_at", "macro_of"]


class Macro(NamedTuple):
    """A ``#define``.

    Attributes:
        name: What is defined.
        parameters: Its parameters; None where it takes none.
        first: Index of the first token of its body.
        last: Index after the last one.
        start: Offset of the body's first byte (of the directive's end where the body is empty).
        end: Offset after the body's last byte.
        directive: Number of the directive.
    """

    name: Token
    parameters: tuple[bytes, ...] | None
    first: int
    last: int
    start: int
    end: int
    directive: int


class Declaration(NamedTuple):
    """A variable, parameter or member as it was declared.

    Attributes:
        name: Its name's token.
        at: Index of the name among the tokens.
        type: The declared type's words, joined by single blanks: ``const unsigned int``; ``auto`` where it says so.
        type_start: Offset of the type's first byte.
        type_end: Offset after the type's last byte (before the name, without ``*`` and ``&``).
        pointers: The ``*`` and ``&`` between type and name.
        extents: What stands in the square brackets after the name.
        value: The initialiser's bytes; None where there is none.
        qualifiers: ``const``, ``constexpr``, ``static``, ``__shared__``, ``extern`` and the like.
    """

    name: Token
    at: int
    type: bytes
    type_start: int
    type_end: int
    pointers: bytes
    extents: tuple[Argument, ...]
    value: Argument | None
    qualifiers: frozenset[bytes]


def macro_of(directive: Directive, number: int, tokens: Sequence[Token]) -> Macro | None:
    """Return the macro that a directive defines; None where it defines none."""
    if directive.name != b"define" or directive.last - directive.first < 3:
        return None
    name = tokens[directive.first + 2]
    if name.kind != Kind.NAME:
        return None
    body = directive.first + 3
    parameters: tuple[bytes, ...] | None = None
    if body < directive.last and tokens[body].text == b"(" and tokens[body].start == name.end:
        closed = body
        while closed < directive.last and tokens[closed].text != b")":
            closed += 1
        parameters = tuple(one.text for one in tokens[body + 1 : closed] if one.text != b",")
        body = min(closed + 1, directive.last)
    end = tokens[directive.last - 1].end
    start = tokens[body].start if body < directive.last else end
    return Macro(name, parameters, body, directive.last, start, end, number)


_QUALIFIERS = frozenset(
    b"const constexpr static volatile extern mutable inline register thread_local __shared__ __device__ __constant__ "
    b"__managed__ __restrict__ __restrict restrict __forceinline__ __host__ __global__".split()
)
_TYPE_WORDS = frozenset(
    b"unsigned signed long short int char float double bool void auto struct class enum union typename".split()
)
_AFTER_NAME = frozenset((b"=", b";", b",", b")", b"[", b"{", b"(", b":"))
_BEFORE_DECLARATION = frozenset((b";", b"{", b"}", b"(", b",", b":", b">", b"]", b")", b"else", b"do"))
_MOST_WORDS = 400
"""In a declaration's type."""
_POINTERS = frozenset((b"*", b"&", b"&&"))
_OF_POINTER = frozenset((b"const", b"volatile"))
_RESTRICT = frozenset((b"__restrict__", b"__restrict", b"restrict"))


def declared_at(  # noqa: PLR0911  each return names one thing that a declaration is not
    outline: Outline, index: int
) -> Declaration | None:
    """Return the declaration whose declared name stands at ``index``; None where the name is only used there.

    ``int a, b`` declares both; what follows a comma is followed back to the type.
    """
    tokens, partner = outline.tokens, outline.partner
    name = tokens[index]
    if name.kind != Kind.NAME or name.text in _TYPE_WORDS or name.text in _QUALIFIERS or name.text in NO_TYPES:
        return None
    following = tokens[index + 1] if index + 1 < len(tokens) else name
    if following.directive != name.directive or following.text not in _AFTER_NAME:
        return None
    at, pointers = _before_pointers(tokens, index)
    if at >= 0 and tokens[at].text == b"," and tokens[at].directive == name.directive:
        at = outline.type_before_comma(at)
    if at < 0 or tokens[at].directive != name.directive:
        return None
    first, words, qualifiers = _type_words(tokens, partner, at)
    if not words:
        return None
    before = tokens[first - 1] if first else None
    if (
        before is not None
        and before.directive == name.directive
        and before.text not in _BEFORE_DECLARATION
        and (before.kind != Kind.NAME or before.text in NO_TYPES)
    ):
        return None
    extents, after = _extents(tokens, partner, index + 1)
    value = _value(tokens, partner, after, name.directive)
    if following.text == b"(" and value is None:
        return None
    text = b" ".join(words).replace(b" :: ", b"::").replace(b":: ", b"::")
    return Declaration(
        name, index, text, tokens[first].start, tokens[at].end, pointers, extents, value, frozenset(qualifiers)
    )


def _before_pointers(tokens: Sequence[Token], index: int) -> tuple[int, bytes]:
    """Return the index of the token before a name and its ``*`` and ``&``, and those."""
    at = index - 1
    pointers: list[bytes] = []
    while at >= 0 and tokens[at].directive == tokens[index].directive:
        text = tokens[at].text
        if text in _POINTERS:
            pointers.append(text)
        elif text not in _RESTRICT and not (text in _OF_POINTER and _after_pointer(tokens, at)):
            break
        at -= 1
    return at, b"".join(reversed(pointers))


def _after_pointer(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a qualifier is a pointer's: ``int* __restrict__ const p``, not ``int const p``."""
    while at > 0 and tokens[at].text in _OF_POINTER | _RESTRICT:
        at -= 1
    return tokens[at].text in _POINTERS


def _type_words(tokens: Sequence[Token], partner: Mapping[int, int], last: int) -> tuple[int, list[bytes], set[bytes]]:
    """Return the index of a declaration's first word, the type's words, and its qualifiers, from its last word."""
    words: list[bytes] = []
    qualifiers: set[bytes] = set()
    at = last
    while at >= 0 and tokens[at].directive == tokens[last].directive:
        token = tokens[at]
        if len(words) > _MOST_WORDS:
            return at, [], qualifiers
        if token.text in _QUALIFIERS:
            qualifiers.add(token.text)
        elif token.text == b"::" and words:
            words.insert(0, b"::")
        elif token.kind == Kind.NAME and token.text not in NO_TYPES:
            # One name makes a type; before it only `unsigned` and the like, or `x::`, belong to it.
            if words and token.text not in _TYPE_WORDS and words[0] != b"::":
                break
            words.insert(0, token.text)
        elif token.text in (b">", b">>") and not words:
            opened = _opened(tokens, at)
            if opened < 0 or template_end(tokens, partner, opened) != at:
                return at, [], qualifiers
            words = [one.text for one in tokens[opened : at + 1]]
            at = opened - 1
            if at < 0 or tokens[at].kind != Kind.NAME:
                return at, [], qualifiers
            words.insert(0, tokens[at].text)
        else:
            break
        at -= 1
    return at + 1, words, qualifiers


def _extents(tokens: Sequence[Token], partner: Mapping[int, int], after: int) -> tuple[tuple[Argument, ...], int]:
    extents: list[Argument] = []
    while after < len(tokens) and tokens[after].text == b"[" and after in partner:
        closed = partner[after]
        start = tokens[after + 1].start
        extents.append(Argument(start, tokens[closed - 1].end if closed > after + 1 else start, after + 1, closed))
        after = closed + 1
    return tuple(extents), after


def _opened(tokens: Sequence[Token], closed: int) -> int:
    depth = 0
    for index in range(closed, max(-1, closed - 200), -1):
        text = tokens[index].text
        if text in (b">", b">>", b">>>"):
            depth += len(text)
        elif text == b"<":
            depth -= 1
            if depth == 0:
                return index
            if depth < 0:
                return -1
        elif text in (b";", b"{", b"}"):
            return -1
    return -1


def _value(tokens: Sequence[Token], partner: Mapping[int, int], after: int, world: int) -> Argument | None:
    if after >= len(tokens) or tokens[after].directive != world:
        return None
    first, last = after + 1, after + 1
    if tokens[after].text in (b"{", b"(") and after in partner:
        last = partner[after]
        if last + 1 < len(tokens) and tokens[last + 1].text not in (b";", b",", b")"):
            return None
    elif tokens[after].text == b"=":
        last = _expression_end(tokens, partner, first)
    return Argument(tokens[first].start, tokens[last - 1].end, first, last) if last > first else None


def _expression_end(tokens: Sequence[Token], partner: Mapping[int, int], index: int) -> int:
    """Return the index of the token that ends an initialiser."""
    world = tokens[index - 1].directive
    while index < len(tokens) and tokens[index].directive == world:
        text = tokens[index].text
        if text in (b";", b",", b")", b"]", b"}"):
            break
        if text in (b"(", b"[", b"{") and index in partner:
            index = partner[index]
        elif text == b"<" and tokens[index - 1].kind == Kind.NAME:
            end = template_end(tokens, partner, index)
            if end > 0 and end + 1 < len(tokens) and tokens[end + 1].text in (b"(", b"::", b"{"):
                index = end
        index += 1
    return index
