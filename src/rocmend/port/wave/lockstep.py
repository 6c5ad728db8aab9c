"""Steps of a warp over a shared array that nothing but lockstep keeps in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.tokens import text_at

__all__ = ["Step", "steps"]

_ADDS = frozenset((b"+=", b"=", b"*=", b"|=", b"&=", b"^="))
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


def _step(file: CudaFile, statement: Statement) -> bytes | None:
    """Return the array of a statement ``a[i] += a[i + 8];``, also behind a condition; None for other statements."""
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
                return array if inside[-1] in _OFFSETS else None
    return None
