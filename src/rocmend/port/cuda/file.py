"""A CUDA C++ source, read once, as rules look at it."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from rocmend.port.cuda.conditions import Branch, Group, branches
from rocmend.port.cuda.declarations import Declaration, Macro, declared_at, macro_of
from rocmend.port.cuda.functions import Function, functions
from rocmend.port.cuda.lexer import Directive, Kind, Lexed, Token, lexed
from rocmend.port.cuda.outline import Outline, Spans
from rocmend.port.cuda.structure import Call, Launch, call_at, launch_at, matched
from rocmend.port.records import Edit

__all__ = ["CudaFile"]

_WORDS_SHOWN = 160
"""Characters of a directive that are shown in a message; a longer one is cut before an operand."""

_OPERANDS = re.compile(r"\s*(?:&&|\|\|)|\s+")


class CudaFile:
    """A source in CUDA C++.

    Nothing is read before it is asked for, and everything is read once. Rules see *shared* code: what both sides
    compile. Code that only one side compiles (under ``USE_ROCM``, ``__HIP_PLATFORM_AMD__`` …, or its opposite) is left
    out by ``names``, ``calls`` and ``launches``.

    Attributes:
        path: Relative to the project, with forward slashes.
        data: The file's bytes.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data

    @cached_property
    def lexed(self) -> Lexed:
        """Return everything the lexer found."""
        return lexed(self.data)

    @property
    def tokens(self) -> list[Token]:
        """Return the tokens without blanks and comments, in order; those of directives carry the directive's number."""
        return self.lexed.tokens

    @property
    def comments(self) -> list[Token]:
        """Return the comments, in order."""
        return self.lexed.comments

    @property
    def directives(self) -> list[Directive]:
        """Return the preprocessor directives, in order."""
        return self.lexed.directives

    @cached_property
    def partner(self) -> dict[int, int]:
        """Return, for the index of each bracket's token, the index of the bracket that it belongs to."""
        return matched(self.tokens, self.directives)

    @cached_property
    def _conditionals(self) -> tuple[list[Branch], list[Group], list[int]]:
        return branches(self.tokens, self.directives, len(self.data))

    @property
    def branches(self) -> list[Branch]:
        """Return the branches of conditional compilation, in the order in which they open."""
        return self._conditionals[0]

    @property
    def groups(self) -> list[Group]:
        """Return the conditional groups (``#if`` to ``#endif``), in the order in which they open."""
        return self._conditionals[1]

    def branch_of(self, token: Token) -> Branch | None:
        """Return the branch that a token's directive opens; None where it opens none."""
        number = self._opened.get(token.directive)
        return None if number is None else self.branches[number]

    @cached_property
    def _opened(self) -> dict[int, int]:
        return {branch.directive: number for number, branch in enumerate(self.branches)}

    def members(self, group: int) -> list[Branch]:
        """Return the branches of a conditional group, in order."""
        return [self.branches[number] for number in self._members[group]]

    @cached_property
    def _members(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.groups]
        for number, branch in enumerate(self.branches):
            found[branch.group].append(number)
        return found

    @property
    def unbalanced(self) -> bool:
        """Whether an ``#if`` has no ``#endif`` or the other way round: no region can be gated safely then."""
        return bool(self._conditionals[2])

    @cached_property
    def _starts(self) -> list[int]:
        return [branch.start for branch in self.branches]

    def branch_at(self, offset: int) -> Branch | None:
        """Return the innermost branch that holds an offset; None outside of all."""
        # A branch that holds the offset is the last one that began before it, or one around that.
        index = bisect.bisect_right(self._starts, offset) - 1
        while index >= 0:
            branch = self.branches[index]
            if offset < branch.end:
                return branch
            index = branch.parent
        return None

    def shared(self, offset: int) -> bool:
        """Return whether both sides may compile what stands at an offset."""
        branch = self.branch_at(offset)
        return branch is None or (branch.rocm is not False and branch.nvidia is not False)

    def on_rocm(self, offset: int) -> bool:
        """Return whether the ROCm side may compile what stands at an offset."""
        branch = self.branch_at(offset)
        return branch is None or branch.rocm is not False

    def line_of(self, offset: int) -> int:
        """Return the line of an offset, from 1."""
        return bisect.bisect_right(self.lexed.line_starts, offset)

    def text(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``."""
        return self.data[start:end]

    def edit(self, start: int, end: int, text: bytes) -> Edit:
        """Return the edit that puts ``text`` in the place of the bytes from ``start`` to ``end``."""
        return Edit(start, end, text)

    def token_at(self, offset: int) -> int:
        """Return the index of the first token that begins at an offset or after it."""
        return bisect.bisect_left(self._token_starts, offset)

    @cached_property
    def _token_starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    @cached_property
    def _by_name(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token.kind == Kind.NAME:
                found.setdefault(token.text, []).append(index)
        return found

    @property
    def all_names(self) -> Iterable[bytes]:
        """Return every name that occurs in the file, each once."""
        return self._by_name.keys()

    def names(self, *names: str | bytes, shared: bool = True) -> Iterator[int]:
        """Yield the indices of the tokens with one of these names, in order.

        Args:
            names: What is looked for.
            shared: Leave out what only one side compiles.
        """
        indices: list[int] = []
        for name in names:
            indices += self._by_name.get(name.encode() if isinstance(name, str) else name, [])
        for index in sorted(indices):
            if not shared or self.shared(self.tokens[index].start):
                yield index

    def calls(self, *names: str | bytes, shared: bool = True, declarations: bool = False) -> Iterator[Call]:
        """Yield the calls of functions (and macros) with one of these names, in order, also in macros' bodies.

        Args:
            names: Of the functions, without qualification.
            shared: Leave out what only one side compiles.
            declarations: Yield what looks like a declaration or definition of the name too.
        """
        for index in self.names(*names, shared=shared):
            call = call_at(self.tokens, self.partner, index)
            if call is not None and (declarations or not call.declares):
                yield call

    def launches(self, *, shared: bool = True) -> Iterator[Launch]:
        """Yield the kernel launches with chevrons, in order."""
        for index, token in enumerate(self.tokens):
            if token.text == b"<<<" and (not shared or self.shared(token.start)):
                launch = launch_at(self.tokens, self.partner, index)
                if launch is not None:
                    yield launch

    @cached_property
    def macros(self) -> dict[bytes, list[Macro]]:
        """Return the macros that the file defines, by name, each with all its definitions."""
        found: dict[bytes, list[Macro]] = {}
        for number, directive in enumerate(self.directives):
            macro = macro_of(directive, number, self.tokens)
            if macro is not None:
                found.setdefault(macro.name.text, []).append(macro)
        return found

    @cached_property
    def functions(self) -> list[Function]:
        """Return the functions with bodies, in order."""
        return functions(self.tokens, self.directives, self.partner)

    def function_at(self, offset: int) -> Function | None:
        """Return the innermost function whose head or body holds an offset; None outside of all."""
        number = self._function_spans.last(offset)
        return self.functions[number] if number >= 0 else None

    @cached_property
    def _function_spans(self) -> Spans:
        return Spans((one.head, one.end) for one in self.functions)

    @cached_property
    def outline(self) -> Outline:
        """Return what surrounds each token."""
        return Outline(self.tokens, self.partner)

    def declarations_of(self, name: str | bytes) -> list[Declaration]:
        """Return the declarations of a variable, parameter or member, in order."""
        return self._scoped(name.encode() if isinstance(name, str) else name)[0]

    def _scoped(self, name: bytes) -> tuple[list[Declaration], Spans]:
        """Return the declarations of a name, and where each is known; found once."""
        known = self._declared.get(name)
        if known is None:
            made = (declared_at(self.outline, index) for index in self.names(name, shared=False))
            found = [one for one in made if one is not None]
            known = found, Spans((one.name.start, self._scope_end(one) + 1) for one in found)
            self._declared[name] = known
        return known

    @cached_property
    def _declared(self) -> dict[bytes, tuple[list[Declaration], Spans]]:
        return {}

    def declaration_of(self, name: str | bytes, at: int) -> Declaration | None:
        """Return the declaration that a use at an offset means: the last one before it in a scope that holds it.

        None where it is declared elsewhere (in a header, as a macro's argument) or in a way that is not understood.
        """
        declarations, known = self._scoped(name.encode() if isinstance(name, str) else name)
        number = known.last(at)
        return declarations[number] if number >= 0 else None

    def _scope_end(self, declaration: Declaration) -> int:
        """Return where the scope ends in which a declared name is known."""
        tokens, partner = self.tokens, self.partner
        opened = self.outline.around[declaration.at]
        if opened < 0:
            world = tokens[declaration.at].directive
            return len(self.data) if world < 0 else self.directives[world].end
        if tokens[opened].text == b"(":
            # A parameter or a loop's variable: known to the end of the body that follows.
            after = self.outline.body_or_end[partner[opened] + 1]
            if after >= len(tokens) or tokens[after].text != b"{" or after not in partner:
                return tokens[min(after, len(tokens) - 1)].end
            opened = after
        return tokens[partner[opened]].end

    def condition_of(self, branch: Branch) -> str:
        """Return the directive that opens a branch as messages name it: by its words, as its line moves with a port.

        An ``#else`` is told with the condition of its group.
        """
        directive = self.directives[branch.directive]
        if directive.name != b"else":
            return self._words(directive)
        return f"#else of {self._words(self.directives[self.groups[branch.group].first])}"

    def _words(self, directive: Directive) -> str:
        first, last = self.tokens[directive.first], self.tokens[directive.last - 1]
        words = self.data[first.start : last.end].replace(b"\\\n", b" ").replace(b"\\\r\n", b" ")
        text = " ".join(words.decode("utf-8", "replace").split())
        if len(text) <= _WORDS_SHOWN:
            return text
        cuts = [one.start() for one in _OPERANDS.finditer(text) if 0 < one.start() <= _WORDS_SHOWN - 4]
        return f"{text[: cuts[-1] if cuts else _WORDS_SHOWN - 4]} ..."

    @cached_property
    def includes(self) -> list[tuple[bytes, int]]:
        """Return what is included (with its brackets or quotes) and the number of the directive, in order."""
        found = []
        for number, directive in enumerate(self.directives):
            if directive.name == b"include" and directive.last - directive.first > 2:
                header = self.tokens[directive.first + 2]
                if header.kind == Kind.HEADER:
                    found.append((self.data[header.start : header.end], number))
        return found
