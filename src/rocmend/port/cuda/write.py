"""Writing a CUDA C++ source for both platforms.

In place, what differs stands in regions of whole lines::

    #ifdef USE_ROCM
    …the same lines with the edits made…
    #else
    …the original lines, untouched…
    #endif

so that ``unifdef -UUSE_ROCM`` gives the original, byte for byte. As a tree of its own, the edits are made and the names
of the API are put in their place in the text.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rocmend.core.errors import UnitError
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.identity import broken
from rocmend.port.cuda.lexer import BOM, Kind
from rocmend.port.cuda.marks import beginning, comment
from rocmend.port.cuda.regions import Region, cut_before, regions
from rocmend.port.edits import applied, compatible
from rocmend.port.records import Edit, Issue, Outcome

__all__ = ["GATE", "HEADER", "hipified", "ported"]

HEADER = b"cuda_to_hip.h"
"""The compatibility header as rules name it; ``ported`` puts its place in the project there."""
GATE = b"USE_ROCM"
_INCLUDES = re.compile(rb'(?:#include "[^"\n]*"\n)+')
_TAKEN = re.compile(rb"(?:#undef \w+\n|#pragma pop_macro\(\"\w+\"\)\n)+")
_GIVEN = re.compile(rb"(?:#define \w+ \d+\n|#pragma push_macro\(\"\w+\"\)\n#if [^\n]*\n#define \w+ 1\n#endif\n)+")
_ASSERTS = re.compile(rb" static_assert\([^;{}]*\);")


def ported(data: bytes, issues: Iterable[Issue], header: str = "", *, path: str = "") -> bytes:
    """Return a source with the edits of its issues gated for ROCm, in place.

    An issue for a person becomes a comment on the ROCm side, once, before its line.

    Args:
        data: The file's bytes.
        issues: Those whose edits are to be made, and those that a person has to see.
        header: What ``#include`` says to reach the compatibility header from this file; its bare name if empty.
        path: The file, for messages.

    Raises:
        UnitError: Edits contradict each other, stand in a conditional that never ends, or would break the gates:
            a source whose NVIDIA side is not the original is never returned.
    """
    file = CudaFile(path, data)
    edits: set[Edit] = set()
    told: dict[int, dict[bytes, Issue]] = {}
    for issue in issues:
        if issue.outcome is Outcome.MANUAL:
            if file.shared(issue.start):
                told.setdefault(cut_before(file, issue.start), {})[comment(issue)] = issue
        else:
            edits |= {_placed(data, edit, header.encode()) for edit in issue.edits}
    for at, comments in _untold(file, told).items():
        lines = b"".join(_indented(data, at, text) for text in comments)
        same = min((edit for edit in edits if edit.start == edit.end == at), default=None)
        if same is not None:
            edits.remove(same)
            lines += same.text
        edits.add(Edit(at, at, lines))
    after = _gated(data, regions(file, _put_together(edits)))
    reason = broken(data, after)
    if reason is not None:
        raise UnitError(
            "port gate",
            f"no condition can be added to {path or 'the source'}: {reason}.",
            next_step="Check it for an unterminated comment, string or conditional; otherwise report this as a bug.",
        )
    return after


def _put_together(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits with what several rules put at one place made one: headers first, and assertions in any order.

    Macros that end there go before, those that begin there after it. Anything else that meets at one place stays apart,
    and contradicts itself.
    """
    kept = set(edits)
    by_place: dict[int, list[Edit]] = {}
    for edit in kept:
        if edit.start == edit.end:
            by_place.setdefault(edit.start, []).append(edit)
    for at, here in by_place.items():
        headers, asserted, taken, given = (
            sorted(edit.text for edit in here if kind.fullmatch(edit.text))
            for kind in (_INCLUDES, _ASSERTS, _TAKEN, _GIVEN)
        )
        known = [*headers, *asserted, *taken, *given]
        others = [edit.text for edit in here if edit.text not in known]
        if len(here) > 1 and len(others) <= 1 and not (asserted and len(known) + len(others) > len(asserted)):
            kept -= set(here)
            kept.add(Edit(at, at, b"".join([*taken, *headers, *asserted, *others, *given])))
    return sorted(kept)


def _untold(file: CudaFile, told: dict[int, dict[bytes, Issue]]) -> dict[int, list[bytes]]:
    """Return the comments that a source does not hold yet, by their places.

    An earlier port may have put one further up, into the region of a rewrite nearby: then their number tells.
    """
    due = Counter(beginning(text) for comments in told.values() for text in comments)
    there = {pattern: len(re.findall(pattern, file.data)) for pattern in due}
    left = {
        at: [
            text
            for text, issue in comments.items()
            if there[beginning(text)] < due[beginning(text)] and not _already_told(file, issue)
        ]
        for at, comments in told.items()
    }
    return {at: comments for at, comments in left.items() if comments}


def _placed(data: bytes, edit: Edit, header: bytes) -> Edit:
    text = edit.text.replace(b'"' + HEADER + b'"', b'"' + (header or HEADER) + b'"')
    if edit.start == len(data) > 0 and not data.endswith(b"\n"):
        text = b"\n" + text.removesuffix(b"\n")  # lines after a last line that does not end
    return Edit(edit.start, edit.end, text)


def _indented(data: bytes, at: int, text: bytes) -> bytes:
    line = data[at : at + 200]
    indent = line[: len(line) - len(line.lstrip(b" \t"))]
    return b"".join(indent + one + b"\n" for one in text.splitlines())


def _already_told(file: CudaFile, issue: Issue) -> bool:
    """Return whether the comment for an issue stands right before its line, from an earlier port."""
    mark = f"ROCM {issue.rule}:".encode()
    at = cut_before(file, issue.start)
    while True:
        ended = next((group for group in file.groups if group.last >= 0 and group.end == at), None)
        if ended is None:
            return False
        inside = [one for one in file.comments if ended.start <= one.start < ended.end]
        if not inside or any(ended.start <= one.start < ended.end and one.directive < 0 for one in file.tokens):
            return False
        if any(mark in file.data[one.start : one.end] for one in inside):
            return True
        at = ended.start


def _gated(data: bytes, gates: Sequence[Region]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for region in gates:
        start = len(BOM) if region.start == 0 and data.startswith(BOM) else region.start
        parts.append(data[at:start])
        parts.append(_region(data, region, start))
        at = max(start, region.end)
    return b"".join([*parts, data[at:]])


def _region(data: bytes, region: Region, start: int) -> bytes:
    original = data[start : region.end]
    eol = _line_end(data, start)
    shifted = [
        Edit(max(0, edit.start - start), edit.end - start, edit.text.replace(b"\r\n", b"\n").replace(b"\n", eol))
        for edit in region.edits
    ]
    changed = applied(original, shifted)
    if changed == original:
        return original
    if not changed.strip():
        changed = b""  # lines that only parted what is gone
    if changed and not changed.endswith(b"\n"):
        changed += eol
    ends = region.end < len(data) or data.endswith(b"\n") or not original
    last = b"#endif" + (eol if ends else b"")
    if not ends:
        original += eol
    if not original:
        return b"#ifdef " + GATE + eol + changed + last
    if not changed:
        return b"#ifndef " + GATE + eol + original + last
    return b"#ifdef " + GATE + eol + changed + b"#else" + eol + original + last


def _line_end(data: bytes, at: int) -> bytes:
    """Return how lines end around an offset."""
    newline = data.find(b"\n", at)
    if newline < 0:
        newline = data.rfind(b"\n")
    return b"\r\n" if newline > 0 and data[newline - 1] == 0x0D else b"\n"


def hipified(data: bytes, issues: Iterable[Issue], names: Mapping[bytes, bytes], *, path: str = "") -> bytes:
    """Return the ROCm side alone: the edits are made, and names of the API are put in their place.

    Names in strings and comments, and what only NVIDIA compiles, stay.

    Args:
        data: The file's bytes.
        issues: Those whose edits are to be made.
        names: What each name of the API becomes; headers with their brackets or quotes.
        path: The file, for messages.

    Raises:
        UnitError: Edits contradict each other.
    """
    file = CudaFile(path, data)
    made = {edit for issue in issues if issue.outcome is not Outcome.MANUAL for edit in issue.edits}
    edits = compatible(_put_together(made))
    taken = [(edit.start, edit.end) for edit in edits]
    starts = [start for start, _ in taken]
    for token in file.tokens:
        if token.kind not in (Kind.NAME, Kind.HEADER):
            continue
        other = names.get(data[token.start : token.end])
        if other is None or not file.on_rocm(token.start):
            continue
        index = bisect.bisect_right(starts, token.start) - 1
        if index < 0 or taken[index][1] <= token.start:
            edits.append(Edit(token.start, token.end, other))
    return applied(data, edits)
