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
_BARRIERS = frozenset(
    b"__syncthreads __syncwarp sync asm __shfl_sync __barrier_sync __syncthreads_or __syncthreads_and "
    b"__syncthreads_count syncthreads warp32_syncwarp".split()
)
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
    """Yield the first two steps of each run of such statements, in code that both sides compile."""
    for function in file.functions:
        if not function.on_device or not file.shared(function.start):
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
    before: tuple[bytes, Statement] | None = None
    told = False
    for one in block.parts:
        name = _step(file, one)
        if name is None:
            before, told = None, False
            continue
        if before is not None and before[0] == name and not told:
            token = file.tokens[one.first]
            declared = file.declaration_of(name, token.start)
            volatile = declared is not None and b"volatile" in declared.qualifiers | set(declared.type.split())
            end = file.tokens[one.last - 1].end
            yield Step(file.tokens[before[1].first].start, end, name.decode("utf-8", "replace"), volatile)
            told = True
        before = (name, one)


def _in_loop(file: CudaFile, loop: Statement) -> Iterator[Step]:
    """Yield the step of a loop that takes another distance each time round, without a barrier in it."""
    words = [token.text for token in file.tokens[loop.first : loop.last]]
    if any(word in _BARRIERS for word in words):
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
        words_of = declared.qualifiers | set(declared.type.split()) if declared is not None else set()
        parameter = declared is None or b"*" in declared.pointers
        if b"__shared__" not in words_of and not (parameter and _SHARED.fullmatch(name)):
            continue
        text = name.decode("utf-8", "replace")
        yield Step(file.tokens[loop.first].start, file.tokens[one.last - 1].end, text, b"volatile" in words_of)
        return


def _step(file: CudaFile, statement: Statement, offsets: frozenset[bytes] = frozenset()) -> bytes | None:
    """Return the array of a statement ``a[i] += a[i + 8];``, also behind a condition; None for other statements.

    Args:
        file: The source.
        statement: What may be one.
        offsets: Names that stand for the distance, and for nothing else in it; numbers do where there are none.
    """
    if statement.kind == "if" and len(statement.parts) == 1:
        inner = statement.parts[0]
        while inner.kind == "block" and len(inner.parts) == 1:
            inner = inner.parts[0]
        return _step(file, inner) if inner.kind == "plain" else None
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
