"""Where lanes of a warp may meet, and where threads of a block do: operations across lanes, in all their notations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rocmend.port.cuda.file import CudaFile
from rocmend.port.wave.sites import own_lanes, wave
from rocmend.port.wave.tokens import text_at

__all__ = ["BARRIERS", "Place", "barriers", "meetings"]

BARRIERS = (b"__syncthreads", b"__syncthreads_or", b"__syncthreads_and", b"__syncthreads_count")
_OF_A_WARP = re.compile(rb"\b(?:shfl|vote|match|redux|elect|bar(?:rier)?\s*\.\s*warp)\s*\.")
_OF_A_BLOCK = re.compile(rb"\bbar(?:rier)?(?:\.cta)?\.(?:sync|red|arrive)")
_MEMBERS = (
    b"sync shfl shfl_up shfl_down shfl_xor ballot any all match_any match_all num_threads_sync "
    b"barrier_wait barrier_arrive".split()
)
_GROUPS = (b"cooperative_groups", b"cg")
_SEEN = frozenset((b"coalesced_threads", b"binary_partition", b"labeled_partition"))
_BLOCKS = frozenset((b"this_thread_block", b"thread_block", b"this_grid", b"grid_group"))


class Place(NamedTuple):
    """An operation at which lanes meet.

    Attributes:
        at: Index of its token.
        born: Index of the token at which the lanes that it names were seen to be there; -1 where it may name others.
    """

    at: int
    born: int


_kept: WeakKeyDictionary[CudaFile, list[Place]] = WeakKeyDictionary()


_LONGEST_HEAD = 400
"""Tokens between a lambda's brackets and its body."""


def meetings(file: CudaFile) -> list[Place]:
    """Return the operations of a warp in code, and the calls of functions and macros that hold one; found once."""
    found = _kept.get(file)
    if found is None:
        found = _kept[file] = _meetings(file)
    return found


def _meetings(file: CudaFile) -> list[Place]:
    own = [
        Place(site.at, own_lanes(file, site))
        for site in wave(file).sites
        if site.call is not None and not site.defines and not site.tested
    ]
    own += [Place(at, -1) for at in _assembly(file, _OF_A_WARP)]
    own += _members(file, block=False)
    return _with_callers(file, own)


def barriers(file: CudaFile) -> list[Place]:
    """Return the barriers of a block in code, and the calls of functions and macros that hold one."""
    own = [Place(call.at, -1) for call in file.calls(*BARRIERS)]
    own += [Place(at, -1) for at in _assembly(file, _OF_A_BLOCK)]
    own += _members(file, block=True)
    return _with_callers(file, own)


def _with_callers(file: CudaFile, own: list[Place]) -> list[Place]:
    places = {place.at: place for place in own}
    bodies = {macro.directive: name for name, macros in file.macros.items() for macro in macros} if own else {}
    holders: set[bytes] = set()
    pending = [place.at for place in own if place.born < 0]
    while pending:
        at = pending.pop()
        token = file.tokens[at]
        name = bodies.get(token.directive) if token.directive >= 0 else _holder(file, at)
        if name is None or name in holders:
            continue
        holders.add(name)
        for call in file.calls(name):
            if call.name.directive < 0 or (not call.declares and call.name.directive != token.directive):
                places.setdefault(call.at, Place(call.at, -1))
                pending.append(call.at)
    return [places[at] for at in sorted(places) if file.tokens[at].directive < 0]


def _holder(file: CudaFile, at: int) -> bytes | None:
    """Return the function, or the lambda with a name, that an operation stands in, where others call it."""
    function = file.function_at(file.tokens[at].start)
    named = _named_lambda(file, at, file.token_at(function.start) if function is not None else 0)
    if named is not None:
        return named
    return None if function is None or b"__global__" in function.qualifiers else function.name.text


def _named_lambda(file: CudaFile, at: int, first: int) -> bytes | None:
    """Return the variable that holds the innermost lambda around an index: ``auto name = [&](int v) { … };``."""
    while (at := file.outline.around[at]) >= first and at > 0:
        if text_at(file, at) == b"{" and (name := _of_lambda(file, at)) is not None:
            return name
    return None


def _of_lambda(file: CudaFile, body: int) -> bytes | None:
    """Return the variable that a lambda with this body is given to; None where it is no lambda, or of no variable."""
    head = body - 1
    for _ in range(_LONGEST_HEAD):
        if head <= 0 or text_at(file, head) in (b"]", b";", b"{", b"}", b"="):
            break
        head = file.partner[head] - 1 if text_at(file, head) == b")" and head in file.partner else head - 1
    opened = file.partner.get(head, -1) if text_at(file, head) == b"]" else -1
    return text_at(file, opened - 2) if opened > 1 and text_at(file, opened - 1) == b"=" else None


def _assembly(file: CudaFile, wanted: re.Pattern[bytes]) -> Iterator[int]:
    for index in file.names(b"asm", b"__asm__", b"__asm"):
        opened = index + 1
        while text_at(file, opened) in (b"volatile", b"__volatile__", b"inline"):
            opened += 1
        if opened in file.partner:
            end = file.tokens[file.partner[opened]].end
            if wanted.search(file.data, file.tokens[opened].start, end):
                yield index


def _members(file: CudaFile, *, block: bool) -> list[Place]:
    """Return the calls of a cooperative group's members."""
    if not any(name in file.all_names for name in _GROUPS):
        return []
    found = []
    for index in file.names(*_MEMBERS):
        if text_at(file, index - 1) != b"." or text_at(file, index + 1) != b"(":
            continue
        group = file.tokens[index - 2]
        declared = file.declaration_of(group.text, group.start)
        words: set[bytes] = set()
        born = -1
        if declared is not None:
            words = set(re.findall(rb"\w+", declared.type))
            if declared.value is not None:
                words |= {token.text for token in file.tokens[declared.value.first : declared.value.last]}
            born = declared.at if words & _SEEN else -1
        if block == bool(words & _BLOCKS and not words & _SEEN and b"tiled_partition" not in words):
            found.append(Place(index, born))
    return found
