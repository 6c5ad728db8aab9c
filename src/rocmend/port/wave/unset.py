"""Variables that only some lanes give a value before an operation across lanes reads it from them.

CUDA code leaves such a variable without a value in the other lanes. Clang takes that for a value which no function may
be passed or return, and concludes that all lanes take the branch that gives it one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.declarations import Declaration
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import call_at
from rocmend.port.wave.intrinsics import INTRINSICS
from rocmend.port.wave.meetings import meetings
from rocmend.port.wave.statements import Statement, statements
from rocmend.port.wave.template_names import template_parameter
from rocmend.port.wave.tokens import text_at

__all__ = ["Unset", "unset"]

_KEPT = frozenset(b"__shared__ static extern const constexpr __constant__ thread_local".split())
_SETS = frozenset((b"=", b"+=", b"-=", b"*=", b"/=", b"|=", b"&=", b"^=", b"<<=", b">>=", b"%="))
_READS_LANES = re.compile(rb"\w*(?:shfl|shuffle|bcast|broadcast|warp|lane|ballot|exchange)\w*", re.IGNORECASE)


_COLLECTIVES = frozenset(
    b"Sum Reduce Max Min InclusiveSum ExclusiveSum InclusiveScan ExclusiveScan Broadcast HeadSegmentedReduce "
    b"HeadSegmentedSum TailSegmentedReduce TailSegmentedSum Exchange".split()
)
"""Members of CUB's collectives: of some the first values alone count."""


class Unset(NamedTuple):
    """A variable that may have no value in some lanes.

    Attributes:
        declared: Its declaration.
        line: Of the use in which it may have none.
    """

    declared: Declaration
    line: int


def unset(file: CudaFile) -> Iterator[Unset]:
    """Yield the variables, each once, in code that both sides compile."""
    told: set[int] = set()
    bodies: dict[int, Statement | None] = {}
    for at in _uses(file):
        name = file.tokens[at]
        function = file.function_at(name.start)
        if function is None or name.directive >= 0 or not _on_device(file, function):
            continue
        declared = _without_value(file, function, at)
        if declared is None or declared.at in told:
            continue
        if function.start not in bodies:
            bodies[function.start] = statements(file, function)
        body = bodies[function.start]
        if body is not None and not _set_before(file, body, declared, at):
            told.add(declared.at)
            yield Unset(declared, name.line)


_OF_A_DEVICE = re.compile(rb"\b(?:threadIdx|blockIdx|__shfl\w*|__syncwarp|__ballot\w*|atomic[A-Z]\w+)\b")


def _on_device(file: CudaFile, function: Function) -> bool:
    return function.on_device or _OF_A_DEVICE.search(file.data, function.start, function.end) is not None


def _uses(file: CudaFile) -> list[int]:
    """Return the indices of variables that functions which read other lanes are passed, or device functions return.

    The operations themselves are left out: their helpers take such variables.
    """
    places = {place.at for place in meetings(file)}
    named = [name for name in file.all_names if _READS_LANES.fullmatch(name)]
    found: list[int] = []
    members = {index for index in file.names(*_COLLECTIVES) if text_at(file, index - 1) == b"."}
    for index in sorted(places | members | set(file.names(*named))):
        name = file.tokens[index].text
        call = None if name in INTRINSICS or name.startswith(b"warp32_") else call_at(file.tokens, file.partner, index)
        if call is not None and not call.declares:
            read = call.args[:1] if name in _COLLECTIVES else call.args  # the others are what they give back
            found += [given.first for given in read if given.last - given.first == 1]
    for index in file.names(b"return"):
        if text_at(file, index + 2) == b";" and file.tokens[index + 1].kind == Kind.NAME:
            function = file.function_at(file.tokens[index].start)
            if function is not None and function.on_device:
                found.append(index + 1)
    return sorted(found)


def _without_value(file: CudaFile, function: Function, at: int) -> Declaration | None:
    """Return the declaration of a local variable that gives it no value."""
    name = file.tokens[at]
    declared = file.declaration_of(name.text, name.start)
    if declared is None or declared.value is not None or declared.extents or declared.qualifiers & _KEPT:
        return None
    if b"&" in declared.pointers or not function.start < declared.name.start < function.end:
        return None
    if text_at(file, declared.at + 1) not in (b";", b",") or declared.name.directive >= 0 or declared.type == b"auto":
        return None
    if not (declared.pointers or _a_number(file, declared.type)):
        return None  # structures may hold what has no value
    # In brackets it is a parameter: of a lambda, of a handler.
    back = declared.at - 1
    while back >= 0 and text_at(file, back) not in (b"{", b"(", b";"):
        back = (
            file.partner[back] - 1 if text_at(file, back) in (b")", b"]", b"}") and back in file.partner else back - 1
        )
    return declared if text_at(file, back) in (b"{", b";") and file.shared(declared.name.start) else None


_NUMBERS = frozenset(
    b"int unsigned signed long short char float double bool int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t "
    b"uint64_t size_t ssize_t ptrdiff_t uint ushort uchar ulong std half __half".split()
)


def _a_number(file: CudaFile, name: bytes) -> bool:
    """Tell whether a type is one of numbers, or may be: a template's parameter, a name like ``index_t``."""
    words = [word for word in re.split(rb"\W+", name) if word and word not in (b"volatile", b"typename")]
    if not words or set(words) <= _NUMBERS:
        return bool(words)
    if len(words) > 1 or b"<" in name:
        return False
    return words[0].endswith((b"_t", b"T")) or any(
        template_parameter(file, index) for index in file.names(words[0], shared=False)
    )


def _set_before(file: CudaFile, body: Statement, declared: Declaration, use: int) -> bool:
    """Tell whether the variable gets a value before a use, on every way to it that branches and loops show."""
    places = [
        index
        for index in file.names(declared.name.text, shared=False)
        if declared.at < index < use and _sets(file, index)
    ]
    if not places:
        return True  # nobody gave it a value: the call does, by reference
    around = body
    while True:
        inner = None
        for part in around.parts:
            if part.first <= use < part.last:
                inner = part
            elif part.last <= use and around.kind == "block" and _always(part, places):
                return True
        if inner is None:
            return False  # what its own statement assigns comes after the use
        if inner.condition is not None and any(inner.condition[0] <= at < inner.condition[1] for at in places):
            return True
        around = inner


def _always(statement: Statement, places: list[int]) -> bool:
    """Tell whether a statement gives the variable its value whichever way it takes."""
    inside = any(statement.first <= at < statement.last for at in places)
    if not inside or statement.kind in {"plain", "switch"}:
        return inside
    if statement.kind == "block" or statement.keyword == b"do":
        return any(_always(part, places) for part in statement.parts)
    if statement.condition is not None and any(statement.condition[0] <= at < statement.condition[1] for at in places):
        return True
    return (
        statement.kind == "if" and len(statement.parts) > 1 and all(_always(part, places) for part in statement.parts)
    )


def _sets(file: CudaFile, index: int) -> bool:
    """Tell whether a use may give the variable a value."""
    after = index + 1
    while text_at(file, after) in (b"[", b"."):  # an element or a member: what has those is not passed as one value
        after = file.partner[after] + 1 if text_at(file, after) == b"[" and after in file.partner else after + 2
        if text_at(file, after) == b"(":
            return True
    if text_at(file, after) in _SETS or text_at(file, index - 1) == b"&" or _is_output(file, index):
        return True
    passed = text_at(file, index - 1) in (b"(", b",") and text_at(file, index + 1) in (b",", b")")
    return passed and not _reads_only(file, index)


def _is_output(file: CudaFile, index: int) -> bool:
    """Tell whether a name is an output of assembly."""
    token = file.tokens[index - 2]
    return text_at(file, index - 1) == b"(" and token.kind == Kind.STRING and b"=" in file.data[token.start : token.end]


def _reads_only(file: CudaFile, index: int) -> bool:
    """Tell whether a call that a variable is passed to reads lanes: it does not give it a value."""
    at = index - 1
    while at > 0 and text_at(file, at) != b"(":
        at = file.partner[at] - 1 if text_at(file, at) in (b")", b"]", b"}") and at in file.partner else at - 1
    name = text_at(file, at - 1)
    first = text_at(file, index - 1) == b"("
    return name in INTRINSICS or (name in _COLLECTIVES and first) or _READS_LANES.fullmatch(name) is not None
