"""Patches that ``git apply`` takes, byte for byte."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from rocmend.port.records import Change

__all__ = ["only", "patch"]

_CONTEXT = 3
_MOST_COMPARED = 250_000
"""A gap of this many pairs of lines is compared line by line; a larger one is replaced as a whole."""
_PLAIN = re.compile(rb"[^\x00-\x1f\"\\\x7f]+")

_Block = tuple[int, int, int, int]
"""Lines ``a[start:end]`` that become ``b[start:end]``."""


def patch(changes: Iterable[Change]) -> bytes:
    """Return a patch in git's form with the changes, by path; empty where nothing changes."""
    ordered = sorted(changes, key=lambda one: one.path)
    return b"".join(_file(change) for change in ordered if change.before != change.after)


def only(text: bytes, paths: Iterable[str]) -> bytes:
    """Return the parts of a patch, made by ``patch``, that are about some files."""
    wanted = {_head(path) for path in paths}
    parts = re.split(rb"^(?=diff --git )", text, flags=re.MULTILINE)
    return b"".join(part for part in parts if part.partition(b"\n")[0] + b"\n" in wanted)


def _head(path: str) -> bytes:
    name = path.encode("utf-8", "surrogateescape")
    return b"diff --git %s %s\n" % (_quoted(b"a/" + name), _quoted(b"b/" + name))


def _file(change: Change) -> bytes:
    name = change.path.encode("utf-8", "surrogateescape")
    old, new = _quoted(b"a/" + name), _quoted(b"b/" + name)
    head = [_head(change.path)]
    if change.before is None:
        head.append(b"new file mode 100644\n")
    if change.after is None:
        head.append(b"deleted file mode 100644\n")
    hunks = list(_hunks(_lines(change.before or b""), _lines(change.after or b"")))
    if hunks:
        tab = b"\t" if b" " in name else b""
        head.append(b"--- " + (b"/dev/null" if change.before is None else old + tab) + b"\n")
        head.append(b"+++ " + (b"/dev/null" if change.after is None else new + tab) + b"\n")
    return b"".join([*head, *hunks])


def _quoted(name: bytes) -> bytes:
    """Return a name as git writes it: in quotes where it holds what would end a line or a name."""
    if _PLAIN.fullmatch(name):
        return name
    shown = b"".join(
        b"\\" + bytes([byte]) if byte in b'"\\' else b"\\%03o" % byte if byte < 0x20 or byte == 0x7F else bytes([byte])
        for byte in name
    )
    return b'"' + shown + b'"'


def _lines(data: bytes) -> list[bytes]:
    """Split after each newline; a carriage return is a byte of its line."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(a: Sequence[bytes], b: Sequence[bytes]) -> Iterator[bytes]:
    group: list[_Block] = []
    for block in _blocks(a, b):
        if group and block[0] - group[-1][1] > 2 * _CONTEXT:
            yield _hunk(a, b, group)
            group = []
        group.append(block)
    if group:
        yield _hunk(a, b, group)


def _hunk(a: Sequence[bytes], b: Sequence[bytes], group: list[_Block]) -> bytes:
    start_a, start_b = max(0, group[0][0] - _CONTEXT), max(0, group[0][2] - _CONTEXT)
    end_a, end_b = min(len(a), group[-1][1] + _CONTEXT), min(len(b), group[-1][3] + _CONTEXT)
    start_b = group[0][2] - (group[0][0] - start_a)
    end_b = group[-1][3] + (end_a - group[-1][1])
    out = [f"@@ -{_range(start_a, end_a)} +{_range(start_b, end_b)} @@\n".encode()]
    at = start_a
    for from_a, to_a, from_b, to_b in group:
        out += [_line(b" ", line) for line in a[at:from_a]]
        out += [_line(b"-", line) for line in a[from_a:to_a]]
        out += [_line(b"+", line) for line in b[from_b:to_b]]
        at = to_a
    out += [_line(b" ", line) for line in a[at:end_a]]
    return b"".join(out)


def _range(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return f"{first}" if count == 1 else f"{first},{count}"


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _blocks(a: Sequence[bytes], b: Sequence[bytes]) -> list[_Block]:
    """Return what differs, in order; between two blocks, the lines are the same."""
    blocks: list[_Block] = []
    at_a = at_b = 0
    for one, other in [*_anchors(a, b), (len(a), len(b))]:
        blocks += _gap(a, b, (at_a, one, at_b, other))
        at_a, at_b = one + 1, other + 1
    merged: list[_Block] = []
    for block in blocks:
        if merged and merged[-1][1] == block[0] and merged[-1][3] == block[2]:
            merged[-1] = (merged[-1][0], block[1], merged[-1][2], block[3])
        else:
            merged.append(block)
    return merged


def _anchors(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return pairs of lines that are the same: all of the common head and tail, and lines that each side has once."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    counts_a, counts_b = Counter(a[head : len(a) - tail]), Counter(b[head : len(b) - tail])
    where = {line: at for at, line in enumerate(b) if head <= at < len(b) - tail and counts_b[line] == 1}
    pairs = [(at, where[a[at]]) for at in range(head, len(a) - tail) if counts_a[a[at]] == 1 and a[at] in where]
    middle = _increasing(pairs)
    return [
        *((at, at) for at in range(head)),
        *middle,
        *((len(a) - tail + at, len(b) - tail + at) for at in range(tail)),
    ]


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs that rises on both sides."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, value) in enumerate(pairs):
        place = bisect_left(tops, value)
        before.append(ends[place - 1] if place else -1)
        tops[place : place + 1] = [value]
        ends[place : place + 1] = [at]
    chain = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _gap(a: Sequence[bytes], b: Sequence[bytes], block: _Block) -> list[_Block]:
    """Return what differs between two anchors."""
    from_a, to_a, from_b, to_b = block
    if from_a == to_a and from_b == to_b:
        return []
    if from_a == to_a or from_b == to_b or (to_a - from_a) * (to_b - from_b) > _MOST_COMPARED:
        return [block]
    matcher = SequenceMatcher(None, a[from_a:to_a], b[from_b:to_b], autojunk=False)
    return [
        (from_a + i, from_a + j, from_b + k, from_b + m)
        for what, i, j, k, m in matcher.get_opcodes()
        if what != "equal"
    ]
