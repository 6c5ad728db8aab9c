"""What surrounds each token, worked out in one pass over a file and not again for each name that asks.

A table here holds for each token what a walk from it would find, so that a file of a million declarations takes a
million steps. Each walk's rule stands with its table.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from rocmend.port.cuda.lexer import Kind, Token

__all__ = ["NO_TYPES", "Outline", "Spans"]

NO_TYPES = frozenset(
    b"return else case goto throw new delete using namespace typedef template operator public private protected if for "
    b"while do switch default break continue sizeof and or not co_return".split()
)
"""Words that a declaration's type cannot be made of."""
_STATEMENT_ENDS = frozenset((b";", b"{", b"}", b"("))
_BODY_OR_END = frozenset((b";", b"{", b"}"))
_AFTER_DECLARED = frozenset((b"=", b",", b";", b"[", b"("))
_BEFORE_DECLARED = frozenset((b"*", b"&", b">", b">>"))
_CLOSING = frozenset((b")", b"]", b"}"))


class Spans:
    """Pieces of a file that are asked for the last one that holds an offset.

    Args:
        spans: Where each begins, in order, and the offset after its last byte.
    """

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        pairs = list(spans)
        self._starts = [start for start, _ in pairs]
        self._ends = [end for _, end in pairs]
        self._before: list[int] = []  # the last one before each that ends after it
        open_ones: list[int] = []
        for index, end in enumerate(self._ends):
            while open_ones and self._ends[open_ones[-1]] <= end:
                open_ones.pop()
            self._before.append(open_ones[-1] if open_ones else -1)
            open_ones.append(index)

    def last(self, offset: int) -> int:
        """Return the number of the last piece that holds an offset; -1 where none does."""
        index = bisect.bisect_right(self._starts, offset) - 1
        while index >= 0 and offset >= self._ends[index]:
            index = self._before[index]
        return index


class Outline:
    """The tables of one file.

    Args:
        tokens: Of the file.
        partner: The brackets that belong together (``structure.matched``).
    """

    def __init__(self, tokens: Sequence[Token], partner: Mapping[int, int]) -> None:
        self.tokens = tokens
        self.partner = partner

    @cached_property
    def around(self) -> list[int]:
        """Return for each token the ``{`` or ``(`` that it stands in, in its own directive; -1 outside of all."""
        found: list[int] = []
        code = here = -1
        world = -1
        for index, token in enumerate(self.tokens):
            if token.directive != world:
                world = token.directive
                here = -1 if world >= 0 else code
            found.append(here)
            if index in self.partner:
                if token.text in _CLOSING:
                    here = found[self.partner[index]]
                elif token.text != b"[":
                    here = index
            if world < 0:
                code = here
        return found

    @cached_property
    def statement_start(self) -> list[int]:
        """Return for each token the last ``;``, brace or open ``(`` up to it, brackets stepped over; -1: none."""
        found: list[int] = []
        for index, token in enumerate(self.tokens):
            if token.text in _STATEMENT_ENDS:
                found.append(index)
                continue
            back = index
            if token.text in _CLOSING and index in self.partner:
                back = self.partner[index]
            found.append(found[back - 1] if back else -1)
        return found

    @cached_property
    def next_declared(self) -> list[int]:
        """Return for each token the first name at or after it with a type word before it: ``int a``, ``T *a``."""
        last = len(self.tokens)
        found = [last] * (last + 1)
        for index in range(last - 1, -1, -1):
            if self._looks_declared(index):
                last = index
            found[index] = last
        return found

    def _looks_declared(self, index: int) -> bool:
        tokens = self.tokens
        if tokens[index].kind != Kind.NAME or index < 1 or index + 1 >= len(tokens):
            return False
        if tokens[index + 1].text not in _AFTER_DECLARED:
            return False
        before = tokens[index - 1]
        return (before.kind == Kind.NAME and before.text not in NO_TYPES) or before.text in _BEFORE_DECLARED

    @cached_property
    def body_or_end(self) -> list[int]:
        """Return for each token the first brace or ``;`` at or after it, round brackets stepped over."""
        found = [len(self.tokens)] * (len(self.tokens) + 1)
        for index in range(len(self.tokens) - 1, -1, -1):
            text = self.tokens[index].text
            if text in _BODY_OR_END:
                found[index] = index
            else:
                stepped = text == b"(" and index in self.partner
                found[index] = found[(self.partner[index] if stepped else index) + 1]
        return found

    @cached_property
    def types_before_commas(self) -> dict[int, int]:
        """Return what is known of statements from before: where the type of their names ends."""
        return {}

    def type_before_comma(self, comma: int) -> int:
        """Return the index of the type's last word for a name after a comma in ``int a = 1, b``; -1: it is none."""
        tokens = self.tokens
        at = self.statement_start[comma - 1] if comma else -1
        if at >= 0 and tokens[at].text == b"(" and not (at >= 1 and tokens[at - 1].text == b"for"):
            return -1
        # From the statement's beginning: the first name that is declared there.
        index = self.next_declared[at + 1]
        if index >= comma:
            return -1
        known = self.types_before_commas.get(at)
        if known is None:
            known = index - 1
            while known > at and tokens[known].text in (b"*", b"&", b"__restrict__"):
                known -= 1
            self.types_before_commas[at] = known
        return known if known > at else -1
