"""Loops of device code that wait for another thread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.cuda.lexer import Kind
from rocmend.port.wave.asking import CHANGES, READS, TAKES
from rocmend.port.wave.polling import ends_by_others
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.tokens import text_at

__all__ = ["Wait", "waits"]


class Wait(NamedTuple):
    """A waiting loop.

    Attributes:
        start: Offset of its first byte.
        end: Offset after its condition.
        one_of_block: Whether only the first thread of a block comes to it.
        own_block: Whether it does, and waits for what other threads of its own block set.
    """

    start: int
    end: int
    one_of_block: bool
    own_block: bool


_THAT_WAIT = (b"acquire", b"wait")
_WAITED_FOR = re.compile(rb"\b(?:atomic|\w*semaphore|latch)\b")


def waits(file: CudaFile) -> Iterator[Wait]:
    """Yield the loops that wait, in code that both sides compile, and the macros that hold one or the head of one.

    The functions of libcu++ that wait are such loops.
    """
    yield from _in_macros(file)
    for call in file.calls(*_THAT_WAIT):
        owner = file.tokens[call.at - 2]
        declared = file.declaration_of(owner.text, owner.start) if call.qualifier in (b".", b"->") else None
        if declared is not None and _WAITED_FOR.search(declared.type):
            yield Wait(owner.start, call.end, one_of_block=False, own_block=False)
    for function in file.functions:
        if not _on_device(file, function) or not file.shared(function.start):
            continue
        body = statements(file, function)
        if body is None:
            continue
        for one in (*walk(body), *_jumps(file, body)):
            if one.kind == "loop" and one.keyword != b"macro" and ends_by_others(file, one):
                tokens = file.tokens
                end = tokens[one.condition[1]].end if one.condition else tokens[one.last - 1].end
                end = max(tokens[one.first].end, end)
                branch = _first_thread(file, body, one)
                own = branch is not None and _of_own_block(file, body, branch, one)
                yield Wait(tokens[one.first].start, end, branch is not None, own)


def _in_macros(file: CudaFile) -> Iterator[Wait]:
    for macro in (one for macros in file.macros.values() for one in macros):
        words = {token.text for token in file.tokens[macro.first : macro.last]}
        if words & (TAKES | READS | {b"volatile"}) and words & {b"while", b"for", b"goto"} and file.shared(macro.start):
            body = file.data[macro.start : macro.end].replace(b"\\\n", b" \n").replace(b"\\\r\n", b" \r\n")
            whole = CudaFile(file.path, b"__device__ void macro() {" + body + b";}")
            if next(waits(whole), None) is not None:
                yield Wait(macro.name.start, macro.end, one_of_block=False, own_block=False)


def _jumps(file: CudaFile, body: Statement) -> Iterator[Statement]:
    """Yield what a `goto` back to a label of its block repeats: as a loop, without a condition where it has none."""
    if b"goto" not in file.all_names:
        return
    labels = {text_at(file, at): at for at in range(body.first, body.last) if text_at(file, at + 1) == b":"}
    for block in walk(body):
        for at, one in enumerate(block.parts if block.kind == "block" else ()):
            inner = one.parts[0] if one.kind == "if" and len(one.parts) == 1 else one
            more = inner.parts[:-1] if inner.kind == "block" else ()
            jump = inner.parts[-1] if inner.kind == "block" and inner.parts and one.kind == "if" else inner
            if jump.keyword != b"goto":
                continue
            label = labels.get(text_at(file, jump.first + 1), -1)
            if not 0 < one.first - label < _LONGEST_WAIT or file.outline.around[label] != block.first:
                continue
            parts = tuple(part for part in block.parts[max(0, at - _LONGEST_WAIT) : at] if part.first > label)
            first = parts[0].first if parts else one.first
            repeated = Statement("block", first, one.first, None, (*parts, *more), b"{")
            yield Statement("loop", first, one.last, one.condition, (repeated,), b"do" if one.condition else b"goto")


_LONGEST_WAIT = 400
"""Tokens between a label and the jump back to it: a loop that does nothing but wait is short."""
_OF_A_DEVICE = re.compile(
    rb"\b(?:atomicCAS|atomicExch|threadIdx|blockIdx|__threadfence|__syncwarp|__nanosleep|__ld\w\w)\b"
)


def _on_device(file: CudaFile, function: Function) -> bool:
    """Tell whether a GPU runs a function: a project's own macros may say so, and what it calls does."""
    if function.on_device:
        return True
    if b"__host__" in function.qualifiers:
        return False
    return _OF_A_DEVICE.search(file.data, function.start, function.end) is not None


def _of_own_block(file: CudaFile, body: Statement, branch: Statement, loop: Statement) -> bool:
    """Tell whether a loop waits for shared memory, or for what the other threads of the block write in that kernel."""
    tokens = file.tokens
    first, last = loop.first, max(loop.last, loop.condition[1] if loop.condition else 0)
    for index in range(first, last):
        token = tokens[index]
        declared = file.declaration_of(token.text, token.start) if token.kind == Kind.NAME else None
        if declared is None:
            continue
        if b"__shared__" in declared.qualifiers | set(declared.type.split()):
            return True
        end = file.partner[index + 1] + 1 if text_at(file, index + 1) == b"[" and index + 1 in file.partner else 0
        if not end or b"blockIdx" not in file.data[token.start : tokens[end - 1].end]:
            continue
        place = [one.text for one in tokens[index:end]]
        for other in file.names(token.text):
            outside = body.first <= other < body.last and not branch.parts[0].first <= other < branch.parts[0].last
            same = [one.text for one in tokens[other : other + len(place)]] == place
            if outside and same and text_at(file, other + len(place)) in CHANGES:
                return True
    return False


def _first_thread(file: CudaFile, body: Statement, loop: Statement) -> Statement | None:
    """Return the branch around a loop that lets only the first thread of a block in, whose threads are in a row."""
    rows = _several_rows(file, body)
    for one in walk(body):
        if one.kind == "if" and one.condition is not None and one.parts[0].first <= loop.first < one.parts[0].last:
            texts = b"".join(token.text for token in file.tokens[one.condition[0] : one.condition[1]])
            alone = not rows or b"threadIdx.y==0" in texts
            if alone and b"||" not in texts and (b"threadIdx.x==0" in texts or texts == b"!threadIdx.x"):
                return one
    return None


def _several_rows(file: CudaFile, body: Statement) -> bool:
    """Tell whether a kernel's blocks have more than one dimension: it asks for the second one."""
    for index in range(body.first, body.last):
        if file.tokens[index].text in (b"y", b"z") and text_at(file, index - 2) in (b"threadIdx", b"blockDim"):
            return True
    return False
