"""Branches in which lanes of one warp, or warps of one block, may meet at different calls.

Since Volta, lanes of a warp that stand in different branches can take part in the same operation. The lanes of a
wavefront cannot: each branch is run by itself, with the others masked off. An operation across lanes in *one* branch is
no such case: there the lanes that its mask names must all take the branch, or have ended, for CUDA to define it.

Warps in different branches can meet at different ``__syncthreads()`` in practice, though CUDA does not define it. Two
warps of one wavefront of 64 lanes arrive there one after the other, as if they were two wavefronts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.wave.meetings import Place, barriers, meetings
from rocmend.port.wave.sites import wave
from rocmend.port.wave.statements import Statement, hides_its_condition, statements, walk
from rocmend.port.wave.tokens import text_at
from rocmend.port.wave.uniform import same_in_a_warp, same_in_a_wavefront

__all__ = ["Split", "splits"]

_BEFORE_CONDITION = frozenset((b"=", b"return", b"(", b",", b"+=", b"-=", b"&=", b"|=", b"{", b";"))


class Split(NamedTuple):
    """A branch with operations across lanes, or barriers of the block, on both of its sides.

    Attributes:
        start: Offset of its first byte.
        end: Offset after its condition.
        one: Line of an operation on one side.
        other: Line of an operation on the other side.
        barrier: Whether they are barriers of the block.
    """

    start: int
    end: int
    one: int
    other: int
    barrier: bool


def splits(file: CudaFile) -> Iterator[Split]:
    """Yield the branches on both sides of which lanes that are named by a mask may meet, or threads of a block."""
    for places, barrier in ((meetings(file), False), (barriers(file), True)):
        if len(places) < 2:
            continue
        indices = [place.at for place in places]
        for function in file.functions:
            first, last = file.token_at(function.start), file.token_at(function.end)
            inside = places[bisect_left(indices, first) : bisect_left(indices, last)]
            if len(inside) < 2 or file.function_at(file.tokens[inside[0].at].start) != function:
                continue
            body = statements(file, function)
            if body is not None:
                yield from _in_function(file, function, body, inside, barrier=barrier)
    yield from _in_pieces(file)


def _in_pieces(file: CudaFile) -> Iterator[Split]:
    """Yield where operations stand on both sides of an ``else``, or after a ``?``, in macros and parts of functions."""
    indices = sorted(site.at for site in wave(file).sites if site.call is not None and not site.tested)
    for macros in file.macros.values():
        for macro in macros:
            inside = indices[bisect_left(indices, macro.first) : bisect_left(indices, macro.last)]
            yield from _in_piece(file, inside, range(macro.first, macro.last))
    outside = [at for at in indices if _outside(file, at)]
    if len(outside) > 1:
        between = range(max(0, outside[0] - _NEAR), outside[-1])
        yield from _in_piece(file, outside, [at for at in between if _outside(file, at)])


_NEAR = 64
_at = attrgetter("at")


def _in_piece(file: CudaFile, places: list[int], piece: Iterable[int]) -> Iterator[Split]:
    if len(places) < 2:
        return
    for at in piece:
        word = file.tokens[at].text
        if word not in (b"else", b"?"):
            continue
        before = bisect_left(places, at)
        after = len(places) - before
        if (word == b"else" and before and after) or (word == b"?" and after > 1):
            token = file.tokens[at]
            yield Split(
                token.start, token.end, file.tokens[places[0]].line, file.tokens[places[-1]].line, barrier=False
            )
            return


def _outside(file: CudaFile, at: int) -> bool:
    """Tell whether an index stands in code, and in no function: in a piece that another file includes."""
    token = file.tokens[at]
    return token.directive < 0 and file.function_at(token.start) is None


def _in_function(
    file: CudaFile, function: Function, body: Statement, places: list[Place], *, barrier: bool
) -> Iterator[Split]:
    same: Callable[[CudaFile, Function, int, int], bool] = same_in_a_wavefront if barrier else same_in_a_warp
    for one in walk(body):
        found = _choice(file, one, places) if one.kind == "plain" else _branch(file, body, one, places)
        if found is None:
            continue
        (first, last), here, there = found
        if hides_its_condition(file, one) or not same(file, function, first, last):
            tokens = file.tokens
            start = tokens[one.first].start
            end = max(tokens[one.first].end, tokens[last].end)
            yield Split(start, end, tokens[here].line, tokens[there].line, barrier)


_Found = tuple[tuple[int, int], int, int]
"""A condition, and an operation on each of its sides."""


def _branch(file: CudaFile, body: Statement, one: Statement, places: list[Place]) -> _Found | None:
    if one.condition is None or one.kind not in {"if", "switch"}:
        return None
    if one.kind == "switch":
        inside = _within(places, one.parts[0])
        others = inside[1:] if len(inside) > 1 and _cases(one.parts[0], inside) > 1 else []
    else:
        inside, others = _sides(file, body, one, places)
    return (one.condition, inside[0], others[0]) if inside and others else None


def _sides(file: CudaFile, body: Statement, one: Statement, places: list[Place]) -> tuple[list[int], list[int]]:
    """Return the operations of the lanes that take an ``if``, and of those that do not."""
    inside = _within(places, one.parts[0])
    others = _within(places, one.parts[1]) if len(one.parts) > 1 else []
    if len(one.parts) > 1 and one.parts[1].leaves and not inside:
        # Those that take the other branch leave by its end, and these go on.
        inside = _after(places, one.last, _loop_end(body, one, _last(one.parts[1])))
    if others or not one.parts[0].leaves:
        return inside, others
    end = _last(one.parts[0])
    if end.keyword == b"goto":
        label = _label(file, body, text_at(file, end.first + 1))
        if label >= one.last:  # the lanes that jump are further on, the others between
            inside += _after(places, label, body.last)
            return inside, _after(places, one.last, label)
        return inside or _after(places, label, one.first), _after(places, one.last, body.last)
    return inside, _after(places, one.last, _loop_end(body, one, end))


def _after(places: list[Place], first: int, last: int) -> list[int]:
    """Return the operations in a range whose lanes were not seen to be there within it."""
    return [place.at for place in _between(places, first, last) if place.born < first]


def _between(places: list[Place], first: int, last: int) -> list[Place]:
    """Return the operations in a range; the places are in order."""
    begins = bisect_left(places, first, key=_at)
    return places[begins : bisect_left(places, last, lo=begins, key=_at)]


def _within(places: list[Place], statement: Statement) -> list[int]:
    return _after(places, statement.first, statement.last)


def _choice(file: CudaFile, one: Statement, places: list[Place]) -> _Found | None:
    """Return the ``?`` of a statement that has operations on both of its sides."""
    inside = _between(places, one.first, one.last)
    if len(inside) < 2:
        return None
    for at in range(one.first, one.last):
        if file.tokens[at].text != b"?":
            continue
        depth = 0
        colon = at + 1
        while colon < one.last and not (file.tokens[colon].text == b":" and depth == 0):
            depth += (file.tokens[colon].text == b"?") - (file.tokens[colon].text == b":")
            colon = file.partner.get(colon, colon) if file.tokens[colon].text in (b"(", b"[", b"{") else colon
            colon += 1
        here = _after(inside, at + 1, colon)
        if here and (there := _after(inside, colon + 1, one.last)):
            first = at
            while first > one.first and file.tokens[first - 1].text not in _BEFORE_CONDITION:
                before = first - 1
                closes = file.tokens[before].text in (b")", b"]") and before in file.partner
                first = file.partner[before] if closes else before
            return (first, at), here[0], there[0]
    return None


def _cases(body: Statement, inside: list[int]) -> int:
    """Return in how many cases of a ``switch`` the places stand."""
    labels = [one.first for one in walk(body) if one.kind == "plain" and one.keyword == b":"]
    return len({bisect_left(labels, at) for at in inside})


def _last(statement: Statement) -> Statement:
    """Return the last statement of a branch."""
    while statement.kind == "block" and statement.parts:
        statement = statement.parts[-1]
    return statement


def _label(file: CudaFile, body: Statement, name: bytes) -> int:
    """Return the index of a label; that of the body's beginning where it is not found."""
    for index in file.names(name, shared=False):
        if body.first < index < body.last and text_at(file, index + 1) == b":" and text_at(file, index - 1) != b"?":
            return index
    return body.first


def _loop_end(body: Statement, branch: Statement, last: Statement) -> int:
    """Return the index after the last token that a lane which took the branch is kept from, by how the branch ends."""
    if last.keyword in (b"return", b"throw"):
        return body.last
    around = [one for one in walk(body) if one.kind in {"loop", "switch"} and one.first < branch.first < one.last]
    return around[-1].last if around else body.last
