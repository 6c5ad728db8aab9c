"""Branches in which lanes of one warp, or warps of one block, may meet at different calls.

Since Volta, lanes of a warp that stand in different branches can take part in the same operation. The lanes of a
wavefront cannot: each branch is run by itself, with the others masked off. An operation across lanes in *one* branch is
no such case: there the lanes that its mask names must all take the branch, or have ended, for CUDA to define it.

Warps in different branches can meet at different ``__syncthreads()`` in practice, though CUDA does not define it. Two
warps of one wavefront of 64 lanes arrive there one after the other, as if they were two wavefronts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function
from rocmend.port.wave.sites import Site, own_lanes, wave
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.uniform import same_in_a_block, same_in_a_warp

__all__ = ["Split", "splits"]

_BARRIERS = (b"__syncthreads", b"__syncthreads_or", b"__syncthreads_and", b"__syncthreads_count")
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


_Same = Callable[[CudaFile, Function, int, int], bool]


def splits(file: CudaFile) -> Iterator[Split]:
    """Yield the branches on both sides of which lanes that are named by a mask may meet, or threads of a block."""
    barriers = sorted(call.at for call in file.calls(*_BARRIERS) if call.name.directive < 0)
    for places, barrier in ((_meeting(file), False), (barriers, True)):
        if len(places) < 2:
            continue
        for function in file.functions:
            first, last = file.token_at(function.start), file.token_at(function.end)
            inside = places[bisect_left(places, first) : bisect_left(places, last)]
            if len(inside) < 2 or file.function_at(file.tokens[inside[0]].start) != function:
                continue
            body = statements(file, function)
            if body is not None:
                yield from _in_function(file, function, body, inside, barrier=barrier)


def _in_function(
    file: CudaFile, function: Function, body: Statement, places: list[int], *, barrier: bool
) -> Iterator[Split]:
    same: _Same = same_in_a_block if barrier else same_in_a_warp
    for one in walk(body):
        found = _choice(file, one, places) if one.kind == "plain" else _branch(body, one, places)
        if found is None:
            continue
        (first, last), here, there = found
        if not same(file, function, first, last):
            tokens = file.tokens
            start = tokens[one.first].start
            end = max(tokens[one.first].end, tokens[last].end)
            yield Split(start, end, tokens[here].line, tokens[there].line, barrier)


_Found = tuple[tuple[int, int], int, int]
"""A condition, and an operation on each of its sides."""


def _branch(body: Statement, one: Statement, places: list[int]) -> _Found | None:
    if one.condition is None or one.kind not in {"if", "switch"}:
        return None
    inside = _within(places, one.parts[0])
    if not inside:
        return None
    if one.kind == "switch":
        others = inside[1:] if len(inside) > 1 and _cases(one.parts[0], inside) > 1 else []
    else:
        others = _within(places, one.parts[1]) if len(one.parts) > 1 else []
        if not others and one.parts[0].leaves:
            others = [at for at in places if at >= one.last and at < _loop_end(body, one)]
    return (one.condition, inside[0], others[0]) if others else None


def _choice(file: CudaFile, one: Statement, places: list[int]) -> _Found | None:
    """Return the ``?`` of a statement that has operations on both of its sides."""
    inside = _within(places, one)
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
        here = [place for place in inside if at < place < colon]
        there = [place for place in inside if place > colon]
        if here and there:
            first = at
            while first > one.first and file.tokens[first - 1].text not in _BEFORE_CONDITION:
                before = first - 1
                closes = file.tokens[before].text in (b")", b"]") and before in file.partner
                first = file.partner[before] if closes else before
            return (first, at), here[0], there[0]
    return None


def _within(places: list[int], statement: Statement) -> list[int]:
    return places[bisect_left(places, statement.first) : bisect_left(places, statement.last)]


def _cases(body: Statement, inside: list[int]) -> int:
    """Return in how many cases of a ``switch`` the places stand."""
    labels = [one.first for one in walk(body) if one.kind == "plain" and one.keyword == b":"]
    return len({sum(label < at for label in labels) for at in inside})


def _loop_end(body: Statement, branch: Statement) -> int:
    """Return the index after the last token that a lane which took the branch is kept from, by how the branch ends."""
    last = branch.parts[0]
    while last.kind == "block" and last.parts:
        last = last.parts[-1]
    if last.keyword in (b"return", b"throw"):
        return body.last
    around = [one for one in walk(body) if one.kind in {"loop", "switch"} and one.first < branch.first < one.last]
    return around[-1].last if around else body.last


def _meeting(file: CudaFile) -> list[int]:
    """Return where masks may name lanes that are elsewhere: the indices of operations and of calls that hold one."""
    sites: list[Site] = [
        site
        for site in wave(file).sites
        if site.call is not None and not site.defines and not site.tested and not own_lanes(file, site)
    ]
    places = {site.at for site in sites}
    holders: set[bytes] = set()
    pending = [site.at for site in sites]
    while pending:
        token = file.tokens[pending.pop()]
        name = _holder(file, token.start, token.directive)
        if name is None or name in holders:
            continue
        holders.add(name)
        for call in file.calls(name):
            if (not call.declares and call.name.directive != token.directive) or call.name.directive < 0:
                places.add(call.at)
                pending.append(call.at)
    return sorted(at for at in places if file.tokens[at].directive < 0)


def _holder(file: CudaFile, offset: int, directive: int) -> bytes | None:
    """Return the function or macro that an operation stands in."""
    if directive >= 0:
        for name, macros in file.macros.items():
            if any(macro.directive == directive for macro in macros):
                return name
        return None
    function = file.function_at(offset)
    if function is None or b"__global__" in function.qualifiers:
        return None
    return function.name.text
