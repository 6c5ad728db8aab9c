"""Functions with bodies, from tokens alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rocmend.port.cuda.lexer import Directive, Kind, Token
from rocmend.port.cuda.structure import Argument, arguments, template_start

__all__ = ["Function", "functions"]


class Function(NamedTuple):
    """A function with a body.

    Attributes:
        name: Its name's token.
        head: Offset of the first token of its declaration.
        start: Offset of ``{``.
        end: Offset after ``}``.
        parameters: What it takes.
        qualifiers: ``__global__``, ``__device__``, ``__host__`` and the like, as written.
    """

    name: Token
    head: int
    start: int
    end: int
    parameters: tuple[Argument, ...]
    qualifiers: frozenset[bytes]

    @property
    def on_device(self) -> bool:
        """Whether the GPU runs it."""
        return bool(self.qualifiers & {b"__global__", b"__device__"})


_NO_FUNCTION = frozenset(
    (
        b"if",
        b"for",
        b"while",
        b"switch",
        b"catch",
        b"return",
        b"sizeof",
        b"alignof",
        b"decltype",
        b"__attribute__",
        b"__launch_bounds__",
        b"__align__",
        b"alignas",
        b"noexcept",
        b"static_assert",
        b"asm",
        b"requires",
        b"constexpr",
        b"defined",
    )
)
_AFTER_HEAD = frozenset((b"const", b"noexcept", b"override", b"final", b"volatile", b"&", b"&&", b"try"))
_LONGEST_HEAD = 64
_QUALIFIERS = frozenset((b"__global__", b"__device__", b"__host__"))


def functions(tokens: Sequence[Token], directives: Sequence[Directive], partner: Mapping[int, int]) -> list[Function]:
    """Return the functions with bodies, in order; functions inside of functions (members of local types) too.

    The head of a body that comes right after an ``#else`` is sought before the ``#if``: a port that puts something
    behind the bracket writes the bracket on both sides.
    """
    gates = _gates(directives)
    found: list[Function] = []
    around: list[tuple[int, bool]] = []  # the braces around a token, and whether each is in a function's code
    for index, token in enumerate(tokens):
        if token.text != b"{" or token.directive >= 0 or index not in partner:
            continue
        while around and partner[around[-1][0]] < index:
            around.pop()
        code = bool(around) and around[-1][1]
        made = _function(tokens, partner, index, gates.get(index - 1, index - 1))
        if made is not None and code and made.head == made.name.start:
            made = None  # a macro and a block: `FOR_EACH(i, n) {`
        if made is not None:
            found.append(made)
        around.append((index, made is not None or (code and not _of_a_class(tokens, index))))
    return found


def _of_a_class(tokens: Sequence[Token], opened: int) -> bool:
    """Tell whether a brace opens a class."""
    at = opened - 1
    while at >= 0 and opened - at < _LONGEST_HEAD and tokens[at].text not in (b";", b"{", b"}", b")"):
        if tokens[at].text in (b"struct", b"class", b"union"):
            return True
        at -= 1
    return False


def _function(tokens: Sequence[Token], partner: Mapping[int, int], body: int, at: int) -> Function | None:
    while at >= 0 and tokens[at].text in _AFTER_HEAD:
        at -= 1
    closed = _head_end(tokens, partner, at)
    if closed < 0:
        return None
    opened = partner[closed]
    name = opened - 1
    if name >= 0 and tokens[name].text == b">":
        name = template_start(tokens, name)
    name = _operator(tokens, name)
    if name in partner and tokens[name].text == b")" and partner[name] >= 1:
        name = partner[name] - 1  # `KERNEL(name)(float *x) {`: a macro makes the name
    if name < 0 or tokens[name].kind != Kind.NAME or tokens[name].text in _NO_FUNCTION:
        return None
    head = name
    while head >= 1 and tokens[head - 1].text not in (b";", b"}", b"{", b":", b"#"):
        head -= 1
        if tokens[head].directive >= 0:
            head += 1
            break
    if head == name and tokens[name - 1].text == b":":
        return None  # a member that a constructor initialises
    words = frozenset(one.text for one in tokens[head:name] if one.kind == Kind.NAME)
    begins = tokens[name - 1].directive >= 0 or tokens[name - 1].text in (b"~", b";", b"}", b"{")
    if not words and not begins:
        return None
    return Function(
        tokens[name],
        tokens[head].start,
        tokens[body].start,
        tokens[partner[body]].end,
        arguments(tokens, partner, opened, closed),
        words & _QUALIFIERS,
    )


def _gates(directives: Sequence[Directive]) -> dict[int, int]:
    """Return for the last token of each ``#else`` the index of the token before its group's ``#if``."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for directive in directives:
        if directive.name in (b"if", b"ifdef", b"ifndef"):
            opened.append(directive.first)
        elif directive.name == b"endif" and opened:
            opened.pop()
        elif directive.name == b"else":
            found[directive.last - 1] = opened[-1] - 1 if opened else -1
    return found


def _operator(tokens: Sequence[Token], name: int) -> int:
    """Return the index of ``operator`` where a name ends with an operator's sign: ``operator()``, ``operator+``."""
    for back in (1, 2):
        if name >= back and tokens[name].kind == Kind.PUNCTUATION and tokens[name - back].text == b"operator":
            return name - back
    return name


def _head_end(tokens: Sequence[Token], partner: Mapping[int, int], at: int) -> int:
    """Return the index of the bracket that ends a function's parameters, before its body; -1 where there is none."""
    steps = 0
    while at >= 0 and steps < 64:
        text = tokens[at].text
        if text == b")" and at in partner:
            opened = partner[at]
            before = tokens[opened - 1] if opened else None
            if before is None:
                return -1
            if before.text in (b"noexcept", b"throw"):
                at = opened - 2
                continue
            # In `f(int a) : x(a), y(b) {` the initialisers are stepped over back to the colon.
            if (
                before.kind == Kind.NAME
                and tokens[opened - 2].text in (b",", b":")
                and tokens[opened - 3].text in (b")", b"}")
            ):
                at = opened - 3
                steps += 1
                continue
            return at
        if text in (b">", b"*", b"&", b"::", b"<") or tokens[at].kind == Kind.NAME:  # `-> std::vector<int>`
            at -= 1
            steps += 1
            continue
        if text == b"->":
            return at - 1 if tokens[at - 1].text == b")" and at - 1 in partner else -1
        return -1
    return -1
