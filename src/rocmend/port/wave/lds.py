"""How many bytes of LDS a kernel has: its own arrays, structures and unions, and those of the functions it calls."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.port.cuda.constants import size_of
from rocmend.port.cuda.declarations import Declaration, declared_at
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Argument
from rocmend.port.wave.sizes import Known, structure_of, value
from rocmend.port.wave.tokens import text_at

__all__ = ["Lds"]

_MOST_CALLED = 64
_AGGREGATES = (b"struct", b"union", b"class")
_BEFORE_TYPE = frozenset(b"volatile const static extern __device__ alignas __align__".split())


class Lds:
    """The static LDS of one file's functions. What is not known counts as nothing: a size is never too large.

    Args:
        file: The source.
    """

    def __init__(self, file: CudaFile) -> None:
        self.file = file
        self._places: dict[int, list[int]] = {}
        for index in file.names(b"__shared__", *self._aliases()):
            function = file.function_at(file.tokens[index].start)
            if function is not None:
                self._places.setdefault(function.start, []).append(index)
        self._called: dict[int, list[Function]] = {}
        self._named: dict[bytes, list[Function]] = {}
        for one in file.functions:
            self._named.setdefault(one.name.text, []).append(one)

    def kernel(self, name: bytes) -> Function | None:
        """Return the one function of a name; None where there is none, or several."""
        found = self._named.get(name, [])
        return found[0] if len(found) == 1 else None

    def own_bytes(self, function: Function, known: Known) -> int:
        """Return the LDS that a function declares.

        Args:
            function: A kernel, or a function that one calls.
            known: What its template's parameters are.
        """
        return sum(self._declared(index, known) for index in self._places.get(function.start, ()))

    def called_bytes(self, function: Function) -> int:
        """Return the LDS of all functions of the file that a function calls, however deep; each has it once."""
        return sum(self.own_bytes(one, {}) for one in self.called(function))

    def called(self, function: Function) -> list[Function]:
        """Return the functions of the file that a function calls, however deep; none where the file has no LDS."""
        if not self._places:
            return []
        found: dict[int, Function] = {function.start: function}
        pending = [function]
        while pending and len(found) <= _MOST_CALLED:
            for other in self._calls(pending.pop()):
                if other.start not in found:
                    found[other.start] = other
                    pending.append(other)
        return list(found.values())[1:]

    def _calls(self, function: Function) -> list[Function]:
        """Return the functions that one calls in any case: in no branch of the preprocessor, nor of a template."""
        known = self._called.get(function.start)
        if known is None:
            known = self._called[function.start] = []
            for at in range(self.file.token_at(function.start), self.file.token_at(function.end)):
                token = self.file.tokens[at]
                if token.text == b"constexpr" and text_at(self.file, at - 1) == b"if":
                    break
                if token.text not in self._named or text_at(self.file, at + 1) not in (b"(", b"<"):
                    continue
                branch = self.file.branch_at(token.start)
                other = self.kernel(token.text)
                if other is not None and b"__global__" not in other.qualifiers and (branch is None or branch.rocm):
                    known.append(other)
        return known

    def _aliases(self) -> Iterator[bytes]:
        """Yield the macros that stand for ``__shared__``."""
        for name, macros in self.file.macros.items():
            words = [token.text for macro in macros for token in self.file.tokens[macro.first : macro.last]]
            if words and b"__shared__" in words and len(words) <= 3:
                yield name

    def _declared(self, index: int, known: Known) -> int:
        """Return the bytes that a ``__shared__`` declares, also by a macro that holds all of it."""
        at = index + 1
        macro = next(iter(self.file.macros.get(text_at(self.file, at), ())), None)
        if macro is not None and macro.parameters is None:
            return sum(self._bytes(one, known) for one in self._declarations(macro.first, macro.last))
        while text_at(self.file, at) in _BEFORE_TYPE:
            at += 1
            at = self.file.partner[at] + 1 if text_at(self.file, at) == b"(" and at in self.file.partner else at
        if self._opens(at) > 0:
            extern = b"extern" in (text_at(self.file, index - 1), text_at(self.file, index + 1))
            size, count, _ = self._aggregate(at, known)
            return 0 if extern else size * count
        end = at
        while end < len(self.file.tokens) and self.file.tokens[end].text not in (b";", b"{", b"}"):
            end += 1
        return sum(self._bytes(one, known) for one in self._declarations(at, end))

    def _declarations(self, first: int, last: int) -> Iterator[Declaration]:
        made = (declared_at(self.file.outline, at) for at in range(first, last))
        yield from (one for one in made if one is not None and not one.pointers)

    def _bytes(self, declared: Declaration, known: Known) -> int:
        """Return the bytes of an array or a structure, without padding; 0 where they are not known."""
        own = known.get(declared.type)
        size = 8 if declared.pointers else size_of(declared.type) or (own if isinstance(own, int) else None)
        if size is None:
            first, last = self.file.token_at(declared.type_start), self.file.token_at(declared.type_end)
            found = structure_of(self.file, first, last, known)
            size = 0 if found is None else self._members(found.body, found.known, union=found.union)
        if b"extern" in declared.qualifiers:
            return 0
        for extent in declared.extents:
            size *= max(0, value(self.file, extent, declared.name.start, known) or 0)
        return size

    def _opens(self, at: int) -> int:
        """Return the index of the brace of ``union {`` or ``struct Name {``; -1 where none stands at an index."""
        if text_at(self.file, at) not in _AGGREGATES:
            return -1
        opened = at + 1 if text_at(self.file, at + 1) == b"{" else at + 2
        return opened if text_at(self.file, opened) == b"{" and opened in self.file.partner else -1

    def _aggregate(self, at: int, known: Known) -> tuple[int, int, int]:
        """Return the bytes of a ``union { … } a, b[2];``, how many of it are declared, and the index of its end."""
        opened = self._opens(at)
        size = self._members(opened, known, union=text_at(self.file, at) == b"union")
        count, end = 0, self.file.partner[opened] + 1
        while end < len(self.file.tokens) and text_at(self.file, end) != b";":
            if self.file.tokens[end].kind == Kind.NAME:
                one, end = self._extents(end + 1, known)
                count += one
            else:
                end += 1
        anonymous = end == self.file.partner[opened] + 1 and opened == at + 1
        return size, 1 if anonymous else count, end

    def _extents(self, at: int, known: Known) -> tuple[int, int]:
        """Return how many elements the brackets from an index on make, and the index after them."""
        count = 1
        while text_at(self.file, at) == b"[" and at in self.file.partner:
            closed = self.file.partner[at]
            given = Argument(self.file.tokens[at + 1].start, self.file.tokens[closed - 1].end, at + 1, closed)
            count *= max(0, value(self.file, given, given.start, known) or 0)
            at = closed + 1
        return count, at

    def _members(self, opened: int, known: Known, *, union: bool) -> int:
        """Return the bytes of a structure's members, or of the largest one of a union."""
        sizes = [0]
        at = opened + 1
        while at < self.file.partner[opened]:
            if self._opens(at) > 0:
                size, count, at = self._aggregate(at, known)
                sizes.append(size * count)
            elif text_at(self.file, at) == b"{" and at in self.file.partner:
                at = self.file.partner[at]
            elif self.file.outline.around[at] == opened:
                one = declared_at(self.file.outline, at)
                if one is not None and not {b"static", b"constexpr"} & one.qualifiers:
                    sizes.append(self._bytes(one, known))
            at += 1
        return max(sizes) if union else sum(sizes)
