"""Steps of a warp over a shared array that nothing but lockstep keeps in order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.tokens import text_at

__all__ = ["Step", "steps"]

_ADDS = frozenset((b"+=", b"=", b"*=", b"|=", b"&=", b"^="))
_BARRIER = re.compile(rb"\w*(?:sync|barrier|fence)\w*|asm|__shfl\w*|__builtin_amdgcn_\w+", re.IGNORECASE)
_SHARED = re.compile(
    rb"(?:s|sh|shr|sm|smem|shmem|shared|sdata|cache|scratch|buf|buffer|partial|tmp|temp)\w*", re.IGNORECASE
)
_OFFSETS = frozenset((b"32", b"16", b"8", b"4", b"2", b"1"))


class Step(NamedTuple):
    """Two statements of which the second reads what other lanes wrote in the first.

    Attributes:
        start: Offset of the first statement.
        end: Offset after the second.
        name: The array.
        volatile: Whether it is volatile.
    """

    start: int
    end: int
    name: str
    volatile: bool


def steps(file: CudaFile) -> Iterator[Step]:
    """Yield the first two steps of each run of such statements, in code that ROCm compiles."""
    for function in file.functions:
        if not function.on_device or not file.on_rocm(function.start):
            continue
        body = statements(file, function)
        if body is None:
            continue
        for block in walk(body):
            if block.kind == "block":
                yield from _in_block(file, block)
            elif block.kind == "loop":
                yield from _in_loop(file, block)


def _in_block(file: CudaFile, block: Statement) -> Iterator[Step]:
    before: tuple[list[bytes], Statement] | None = None
    told = False
    for one in block.parts:
        if not file.on_rocm(file.tokens[one.first].start):
            continue  # a barrier for CUDA alone keeps nothing in order here
        names = _steps(file, one)
        both = [name for name in names if before is not None and name in before[0]]
        if before is not None and both and not told:
            at = file.tokens[one.first].start
            volatile = [b"volatile" in _words(file, name, at) for name in both]
            name = both[volatile.index(min(volatile))]
            end = file.tokens[one.last - 1].end
            yield Step(file.tokens[before[1].first].start, end, name.decode("utf-8", "replace"), all(volatile))
        told = bool(names) and (told or bool(both))
        before = (names, one) if names else None


def _words(file: CudaFile, name: bytes, at: int) -> frozenset[bytes]:
    """Return the words of an array's declaration; none where it is not known."""
    declared = file.declaration_of(name, at)
    return frozenset() if declared is None else declared.qualifiers | frozenset(declared.type.split())


def _meets(file: CudaFile, one: Statement) -> bool:
    """Tell whether a statement has a barrier, or an operation across lanes, on ROCm."""
    tokens = file.tokens[one.first : one.last]
    return any(
        token.kind == Kind.NAME and _BARRIER.fullmatch(token.text) and file.on_rocm(token.start) for token in tokens
    )


def _steps(file: CudaFile, statement: Statement) -> list[bytes]:
    """Return the arrays of which a statement is a step, also behind a condition: ``if (a[i] > a[i + 8]) { … }``."""
    if statement.kind == "if" and len(statement.parts) == 1 and not _meets(file, statement):
        inner = statement.parts[0]
        parts = inner.parts if inner.kind == "block" else (inner,)
        return [name for part in parts for name in _steps(file, part)]
    name = _step(file, statement)
    return [] if name is None else [name]


def _in_loop(file: CudaFile, loop: Statement) -> Iterator[Step]:
    """Yield the step of a loop that takes another distance each time round, without a barrier in it."""
    if _meets(file, loop):
        return
    heads = {token.text for token in file.tokens[loop.first : loop.parts[0].first] if token.kind == Kind.NAME}
    for one in walk(loop.parts[0]):
        if one.kind != "plain" or one.parts:
            continue
        name = _step(file, one, frozenset(heads))
        if name is None:
            continue
        token = file.tokens[one.first]
        declared = file.declaration_of(name, token.start)
        words_of = _words(file, name, token.start)
        parameter = declared is None or b"*" in declared.pointers
        if b"__shared__" not in words_of and not (parameter and _SHARED.fullmatch(name)):
            continue
        text = name.decode("utf-8", "replace")
        yield Step(file.tokens[loop.first].start, file.tokens[one.last - 1].end, text, b"volatile" in words_of)
        return


def _step(file: CudaFile, statement: Statement, offsets: frozenset[bytes] = frozenset()) -> bytes | None:
    """Return the array of a statement ``a[i] += a[i + 8];``; None for other statements.

    Args:
        file: The source.
        statement: What may be one.
        offsets: Names that stand for the distance, and for nothing else in it; numbers do where there are none.
    """
    tokens, first = file.tokens, statement.first
    if statement.kind != "plain" or first + 1 >= len(tokens) or tokens[first + 1].text != b"[":
        return None
    closed = file.partner.get(first + 1)
    if closed is None or text_at(file, closed + 1) not in _ADDS:
        return None
    array = tokens[first].text
    index = [token.text for token in tokens[first + 2 : closed]]
    for at in range(closed + 2, statement.last - 1):
        if tokens[at].text == array and text_at(file, at + 1) == b"[" and at + 1 in file.partner:
            inside = [token.text for token in tokens[at + 2 : file.partner[at + 1]]]
            if inside[: len(index)] == index and len(inside) == len(index) + 2 and inside[-2:][0] == b"+":
                fits = inside[-1] in offsets and not offsets & set(index) if offsets else inside[-1] in _OFFSETS
                return array if fits else None
    return None
