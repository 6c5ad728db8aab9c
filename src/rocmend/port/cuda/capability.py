"""What a source does with the compute capability of a device, also by variables and functions that hold it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rocmend.port.cuda.conditions import evaluated
from rocmend.port.cuda.constants import constant
from rocmend.port.cuda.declarations import Declaration, Macro
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.operands import call_start, callee, object_start, operand_start
from rocmend.port.cuda.structure import Argument, Call

__all__ = ["AMD", "Capabilities", "Use", "prints"]

AMD: tuple[tuple[int, int], ...] = ((9, 0), (9, 4), (9, 5), (10, 3), (11, 0), (11, 5), (12, 0))
"""What HIP reports as major and minor: the numbers of gfx90a, gfx942, gfx950, gfx1030, gfx1100, gfx1151 and gfx1200."""
_MAJORS = tuple(major for major, _ in AMD)
_MINORS = tuple(minor for _, minor in AMD)
_ASKS = re.compile(rb"device_?prop|compute_?capability", re.IGNORECASE)
_COMPARISONS = frozenset((b"<", b">", b"<=", b">=", b"==", b"!="))
_ARITHMETIC = frozenset((b"+", b"-", b"*", b"/", b"%"))
_LOGIC = frozenset((b"&&", b"||", b"!", b"and", b"or", b"not"))
_CASTS = frozenset(b"int unsigned size_t int64_t uint32_t int32_t long short float double bool".split())
_HOLDS = frozenset(b"make_pair make_tuple pair tuple tie get min max make_int2".split())
"""Functions that give what they are given."""
_PRINTS = re.compile(
    rb"(?:\w+_)?(?:\w{0,3}printf|print(?:ln)?|cout|cerr|clog|puts|LOG\w*|WARN\w*|INFO\w*)|perror|_ConvertSMVer2\w+"
)
_MAY_PRINT = re.compile(rb"(?:\w+_)?(?:log|info|debug|warn|trace|error)|append|insert")
"""Functions that print where they are given a text: ``log`` is one of numbers too, ``insert`` one of lists."""
_TEXTS = frozenset(b"to_string format sprintf snprintf str append insert StrCat".split())
"""Functions that make texts, which are printed or name an architecture."""
_ARCHITECTURE = re.compile(rb"\bsm_|compute_|-arch|--gpu-arch|gencode")
_STREAMS = frozenset((b"cout", b"cerr", b"clog", b"LOG"))
_MOST_FOLLOWED = 256
"""Variables and functions of one file."""


def prints(file: CudaFile, name: bytes, opened: int) -> bool:
    """Tell whether a call, by its name and its bracket's index, prints what it is given, or adds it to a text."""
    if _PRINTS.fullmatch(name):
        return True
    last = file.partner.get(opened, opened)
    return bool(_MAY_PRINT.fullmatch(name)) and any(one.kind == Kind.STRING for one in file.tokens[opened:last])


class Use(NamedTuple):
    """A place at which a capability decides something, or goes where this file does not show what it decides.

    Attributes:
        at: Index of the token that stands for the capability.
        how: ``compared``, ``chooses``, ``kept`` (given to other code) or ``named`` (an architecture's name is made).
        where: Indices of the whole test: the first token, and after the last; of ``compared`` alone.
    """

    at: int
    how: str
    where: tuple[int, int] = (0, 0)


class _Atom(NamedTuple):
    """Tokens that stand for a capability, or for a number made of it, and what that is for each of ``AMD``."""

    first: int
    last: int
    values: tuple[int, ...] | None


class Capabilities:
    """The capabilities of one file, and what is done with them.

    Attributes:
        uses: By place.
    """

    def __init__(self, file: CudaFile) -> None:
        self.file = file
        self.tokens = file.tokens
        self.atoms: dict[int, _Atom] = {}
        self.uses: list[Use] = []
        self._of: dict[int, int] = {}  # the origin of each atom that stands for a variable or a function
        self._open: dict[int, bool] = {}  # origins outside of which the value may be used too, and whether it decides
        self._followed: set[int] = set()
        self._expands: set[int] = set()  # directives that define macros
        if _ASKS.search(file.data):
            self._read()

    def words(self, first: int, last: int, sample: int) -> list[bytes] | None:
        """Return the tokens of an expression with the numbers of one GPU; None where these are not known."""
        found: list[bytes] = []
        at = first
        while at < last:
            atom = self.atoms.get(at)
            token = self.tokens[at]
            if atom is not None:
                if atom.values is None:
                    return None
                found.append(b"%d" % atom.values[sample])
                at = atom.last
                continue
            value = None
            if token.kind == Kind.NAME and self._text(at + 1) not in (b"(", b".", b"->", b"["):
                value = constant(self.file, Argument(token.start, token.end, at, at + 1), token.start)
            found += [token.text] if value is None else [b"(", b"-" if value < 0 else b"+", b"%d" % abs(value), b")"]
            at += 1
        return found

    def value(self, first: int, last: int, sample: int) -> int | None:
        """Return an expression's value on one GPU of ``AMD``; None where it depends on other things."""
        words = self.words(first, last, sample)
        return None if words is None else evaluated(words, {})

    def _text(self, at: int) -> bytes:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else b""

    def _beside(self, first: int, last: int) -> tuple[bytes, bytes]:
        """Return what stands before and after an expression; nothing where a directive begins or ends there."""
        world = self.tokens[first].directive
        inside = [0 <= at < len(self.tokens) and self.tokens[at].directive == world for at in (first - 1, last)]
        return self._text(first - 1) if inside[0] else b"", self._text(last) if inside[1] else b""

    def _read(self) -> None:
        pending = [*self._members(), *self._asked()]
        self.atoms = {atom.first: atom for atom in pending}
        seen: set[int] = set()
        while pending:  # variables first: an expression is known when all of its parts are
            atom = pending.pop()
            if atom.first in seen:
                continue
            seen.add(atom.first)
            self.atoms[atom.first] = atom
            pending += self._kept(atom)
        for first in sorted(self.atoms):
            self._use(self.atoms[first])
        for origin, decides in self._open.items():
            if not decides:
                self.uses.append(Use(origin, "kept"))
        self.uses.sort()

    def _members(self) -> Iterator[_Atom]:
        for index in self.file.names(b"major", b"minor"):
            if self._text(index - 1) in (b".", b"->") and self._text(index + 1) not in (b"(", b"="):
                first = object_start(self.file, index - 1)
                if self._is_device(first, index - 1):
                    yield _Atom(first, index + 1, _MAJORS if self.tokens[index].text == b"major" else _MINORS)

    def _is_device(self, first: int, dot: int) -> bool:
        """Tell whether an object may be a device's properties: it is not declared as something else."""
        if dot - first > 1:
            return True
        declared = self.file.declaration_of(self._text(first), self.tokens[first].start)
        return declared is None or declared.type == b"auto" or b"prop" in declared.type.lower()

    def _asked(self) -> Iterator[_Atom]:
        """Yield the uses of variables that a question for an attribute sets."""
        names = (b"cudaDeviceGetAttribute", b"cuDeviceGetAttribute", b"cuDeviceComputeCapability")
        for call in self.file.calls(*names):
            pair = call.name.text == names[2]
            for place, argument in enumerate(call.args[: 2 if pair else 1]):
                words = b"" if pair or len(call.args) < 2 else self.file.data[call.args[1].start : call.args[1].end]
                major = place == 0 if pair else re.search(rb"Capability_?Major", words, re.IGNORECASE)
                if pair or re.search(rb"Capability_?M(?:aj|in)or", words, re.IGNORECASE):
                    yield from self._target(argument, _MAJORS if major else _MINORS, call)

    def _target(self, argument: Argument, values: tuple[int, ...], call: Call) -> Iterator[_Atom]:
        if argument.last - argument.first == 2 and self._text(argument.first) == b"&":
            yield from self._variable(argument.first + 1, values, call.at)
        else:
            self._open.setdefault(call.at, False)

    def _variable(self, name: int, values: tuple[int, ...] | None, origin: int) -> Iterator[_Atom]:
        """Yield the uses of a variable that is given a capability; one of a class or a file is used elsewhere too."""
        token = self.tokens[name]
        declared = self.file.declaration_of(token.text, token.start)
        if declared is None or not self._is_local(declared):
            self._open.setdefault(origin, False)
        if declared is None or declared.at in self._followed or len(self._followed) > _MOST_FOLLOWED:
            return
        self._followed.add(declared.at)
        for index in self.file.names(token.text):
            if index in (name, declared.at) or self._text(index - 1) in (b".", b"->", b"::", b"&"):
                continue
            same = self.file.declaration_of(token.text, self.tokens[index].start) is declared
            if same and self._text(index + 1) != b"=" and self.tokens[index].directive < 0:
                self._of[index] = origin
                yield _Atom(index, index + 1, values)

    def _is_local(self, declared: Declaration) -> bool:
        function = self.file.function_at(declared.name.start)
        return function is not None and b"static" not in declared.qualifiers and b"&" not in declared.pointers

    def _kept(self, atom: _Atom) -> Iterator[_Atom]:
        """Yield the uses of the variable or function that a capability is given to."""
        first, last = self._expression(atom)
        left, right = self._beside(first, last)
        if left in _COMPARISONS or right in _COMPARISONS | {b"?"} | _LOGIC:
            return
        macro = self._macro_around(first)
        if macro is not None and (macro.first, macro.last) == (first, last):
            yield from self._expanded(macro, atom.first, self._values(first, last))
            return
        if left == b"return":
            function = self.file.function_at(self.tokens[first].start)
            at = -1 if function is None else self.file.token_at(function.name.start)
            if function is None or at in self._followed:
                return
            self._followed.add(at)
            self._open.setdefault(atom.first, False)
            for call in self.file.calls(function.name.text):
                self._of[call.at] = atom.first
                yield _Atom(call.at, call.closed + 1, self._values(first, last))
            return
        name = first - 2
        if left in (b"=", b"{", b"(") and right in (b";", b",", b"}", b")") and self.tokens[name].kind == Kind.NAME:
            declares = self.file.declaration_of(self._text(name), self.tokens[name].start)
            given = left == b"=" or (declares is not None and declares.at == name)
            if given and self._text(first - 3) not in (b".", b"->"):
                yield from self._variable(name, self._values(first, last), atom.first)

    def _macro_around(self, at: int) -> Macro | None:
        """Return the macro in whose body an index stands."""
        number = self.tokens[at].directive
        if number < 0:
            return None
        macros = self.file.macros.get(self._text(self.file.directives[number].first + 2), ())
        return next((one for one in macros if one.directive == number), None)

    def _expanded(self, macro: Macro, origin: int, values: tuple[int, ...] | None) -> Iterator[_Atom]:
        """Yield the uses of a macro that stands for a capability."""
        if macro.directive in self._expands or len(self._expands) > _MOST_FOLLOWED:
            return
        self._expands.add(macro.directive)
        used = [at for at in self.file.names(macro.name.text) if self.tokens[at].directive != macro.directive]
        ends = {at: at + 1 for at in used}
        if macro.parameters is not None:
            calls = [one for one in self.file.calls(macro.name.text) if one.at in ends]
            ends = {one.at: one.closed + 1 for one in calls if all(self._may_be_device(given) for given in one.args)}
        if ends or not used:
            self._open.setdefault(origin, False)
        for at, end in ends.items():
            self._of[at] = origin
            yield _Atom(at, end, values)

    def _may_be_device(self, given: Argument) -> bool:
        """Tell whether a macro's argument may be a device's properties: it is no variable of another type."""
        alone = given.last - given.first == 1 and self.tokens[given.first].kind == Kind.NAME
        return not alone or self._is_device(given.first, given.first + 1)

    def _values(self, first: int, last: int) -> tuple[int, ...] | None:
        found = [self.value(first, last, sample) for sample in range(len(AMD))]
        return tuple(one for one in found if one is not None) if None not in found else None

    def _expression(self, atom: _Atom) -> tuple[int, int]:
        """Return the arithmetic, casts and brackets around a capability."""
        first, last = atom.first, atom.last
        macro = self._macro_around(first)
        body = -1 if macro is None else macro.first
        for _ in range(64):
            before = first, last
            left, right = self._beside(first, last)
            if right == b"." and self._text(last + 2) != b"(":  # of a pair
                last += 2
            elif right in _ARITHMETIC:
                last = self._operand_end(last + 1)
            if left in _ARITHMETIC:
                first = operand_start(self.file, first - 2)
            elif left == b")" and self._text(first - 2) in _CASTS:
                first = self.file.partner.get(first - 1, first)
            opened = first - 1
            if self._beside(first, last)[0] in (b"(", b",", b"{"):
                opened = self._opened(first)
                begins = opened == body  # a macro's name stands before it, which is not called
                name = b"" if begins else callee(self.file, opened)
                closed = self.file.partner.get(opened, -1)
                alone = opened == first - 1 and closed == last
                given = self._text(opened) == b"{" and self._text(opened - 1) in (b"=", b"return")
                if closed >= last and (given or name in _HOLDS | _CASTS or (alone and name == b"")):
                    first, last = opened if begins else call_start(self.file, opened), closed + 1
            if (first, last) == before:
                break
        return first, last

    def _opened(self, at: int) -> int:
        """Return the index of the bracket that an argument stands in; -1 where there is none."""
        return self.file.outline.around[at]

    def _operand_end(self, at: int) -> int:
        atom = self.atoms.get(at)
        if atom is not None:
            return atom.last
        if self._text(at) == b"(" and at in self.file.partner:
            return self.file.partner[at] + 1
        at += 1
        while self._text(at) in (b".", b"->", b"::"):
            at += 2
        return self.file.partner[at] + 1 if self._text(at) in (b"(", b"[") and at in self.file.partner else at

    def _use(self, atom: _Atom) -> None:
        """Record what is done with a capability."""
        first, last = self._expression(atom)
        left, right = self._beside(first, last)
        origin = self._of.get(atom.first)
        how, where = "", (0, 0)
        if left in _COMPARISONS or right in _COMPARISONS:
            start = self._side_start(first - 2) if left in _COMPARISONS else first
            end = self._side_end(last + 1) if right in _COMPARISONS else last
            other = (start, first - 1) if left in _COMPARISONS else (last + 1, end)
            if not self._is_capability(other):
                how, where = "compared", (start, end)
        elif right == b"?" or left in _LOGIC or right in _LOGIC or (left == b"[" and right == b"]"):
            how = "chooses"
        elif left == b"<<":
            how = "named" if self._names_architecture(first, streams=True) else ""
        elif left == b"=" and (self._text(first - 3) in (b".", b"->") or self._text(first - 2) == b"]"):
            how = "kept"
        elif left in (b"(", b",", b"{") and right in (b")", b",", b"}"):
            how = self._argument(first)
        if how:
            if origin in self._open:
                self._open[origin] = True
            self.uses.append(Use(atom.last - 1 if origin is None else atom.first, how, where))

    def _argument(self, first: int) -> str:
        opened = self._opened(first)
        name = callee(self.file, opened)
        if name in (b"switch", b"if", b"while"):
            return "chooses"
        if name in (b"", b"?", b"for"):
            return "kept" if self._text(opened) == b"{" and self._text(opened - 1) in (b"=", b",", b"(", b"{") else ""
        if name in _TEXTS and self._text_compared(opened):
            return "chooses"
        if name in _TEXTS - {b"append", b"insert"} or prints(self.file, name, opened):
            return "named" if name in _TEXTS and self._names_architecture(first, streams=False) else ""
        declared = self.file.declaration_of(name, self.tokens[opened - 1].start)
        if declared is not None and declared.at == opened - 1:
            return ""  # a variable that is followed
        return "kept"

    def _text_compared(self, opened: int) -> bool:
        """Tell whether the text that a call makes, or one that it is a part of, is compared with another."""
        end = self.file.partner.get(opened, opened)
        if opened == end:
            return False
        first, last = self._expression(_Atom(call_start(self.file, opened), end + 1, None))
        return bool({self._text(first - 1), self._text(last)} & {b"==", b"!="})

    def _names_architecture(self, first: int, *, streams: bool) -> bool:
        start, end = first, first
        while start > 0 and self._text(start - 1) not in (b";", b"{", b"}"):
            start -= 1
        while end < len(self.tokens) and self._text(end) not in (b";", b"{", b"}"):
            end += 1
        words = self.tokens[start:end]
        if streams and any(one.text in _STREAMS for one in words):
            return False
        if any(one.text in (b"printf", b"fprintf", *_STREAMS) for one in words):
            return False
        return any(one.kind == Kind.STRING and _ARCHITECTURE.search(self._bytes(one.start, one.end)) for one in words)

    def _bytes(self, start: int, end: int) -> bytes:
        return self.file.data[start:end]

    def _side_start(self, at: int) -> int:
        """Return the index of the first token of the expression that ends at an index."""
        start = operand_start(self.file, at)
        while self._text(start - 1) in _ARITHMETIC:
            start = operand_start(self.file, start - 2)
        return start

    def _side_end(self, at: int) -> int:
        end = self._operand_end(at)
        while self._text(end) in _ARITHMETIC:
            end = self._operand_end(end + 1)
        return end

    def _is_capability(self, where: Sequence[int]) -> bool:
        """Tell whether an expression is that of another device: two of them are compared with each other."""
        at, found = where[0], False
        while at < where[1]:
            atom = self.atoms.get(at)
            if atom is not None:
                found, at = True, atom.last
                continue
            if self.tokens[at].kind == Kind.NAME:
                return False
            at += 1
        return found
