"""Branches in which lanes of one warp may meet at different calls.

Since Volta, lanes of a warp that stand in different branches can take part in the same operation. The lanes of a
wavefront cannot: each branch is run by itself, with the others masked off. An operation across lanes in *one* branch is
no such case: there the lanes that its mask names must all take the branch, or have ended, for CUDA to define it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.structure import Function
from rocmend.port.wave.sites import Site, own_lanes, wave
from rocmend.port.wave.statements import Statement, statements, walk
from rocmend.port.wave.uniform import same_in_a_warp

__all__ = ["Split", "splits"]


class Split(NamedTuple):
    """A branch with operations across lanes on both of its sides.

    Attributes:
        start: Offset of its first byte.
        end: Offset after its condition.
        one: Line of an operation on one side.
        other: Line of an operation on the other side.
    """

    start: int
    end: int
    one: int
    other: int


def splits(file: CudaFile) -> Iterator[Split]:
    """Yield the branches on both sides of which lanes that are named by a mask may meet."""
    places = _meeting(file)
    if not places:
        return
    for function in file.functions:
        inside = [at for at in places if function.start <= file.tokens[at].start < function.end]
        if len(inside) < 2 or file.function_at(file.tokens[inside[0]].start) != function:
            continue
        body = statements(file, function)
        if body is not None:
            yield from _in_function(file, function, body, inside)


def _in_function(file: CudaFile, function: Function, body: Statement, places: list[int]) -> Iterator[Split]:
    for one in walk(body):
        if one.condition is None or one.kind not in {"if", "switch"}:
            continue
        inside = _within(places, one.parts[0])
        if not inside:
            continue
        if one.kind == "switch":
            others = inside[1:] if len(inside) > 1 and _cases(one.parts[0], inside) > 1 else []
        else:
            others = _within(places, one.parts[1]) if len(one.parts) > 1 else []
            if not others and one.parts[0].leaves:
                others = [at for at in places if at >= one.last and at < _loop_end(body, one)]
        if others and not same_in_a_warp(file, function, *one.condition):
            first, last = one.first, one.condition[1]
            yield Split(
                file.tokens[first].start,
                file.tokens[last].end,
                file.tokens[inside[0]].line,
                file.tokens[others[0]].line,
            )


def _within(places: list[int], statement: Statement) -> list[int]:
    return [at for at in places if statement.first <= at < statement.last]


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
