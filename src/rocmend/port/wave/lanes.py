"""How many lanes a file's warps have where other files include it: what a project ported by hand says of its width.

A header whose code for ROCm works with the whole wavefront and a source that includes it and counts 32 lanes are each
right by themselves, and wrong together on wavefronts of 64 lanes. Both are read alone; this is what each says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.port.cuda.conditions import SAYS_ROCM
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.records import Issue, Lanes, Outcome
from rocmend.port.wave.sites import wave
from rocmend.port.wave.widths import arithmetic

__all__ = ["lanes", "left_to_a_person", "narrow"]

_RULES = frozenset(("CU09", "CU11", "CU33", "CU36"))
"""Rules whose rewrites say that a warp has 32 lanes; those that call helpers of 32 lanes are known by their text."""
_MOST_NAMES = 256
_INCLUDED = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]{1,400})[>\"]", re.MULTILINE)


def lanes(data: bytes) -> Lanes:
    """Return what a file says of the lanes of a warp."""
    includes = tuple(dict.fromkeys(name.decode("utf-8", "replace") for name in _INCLUDED.findall(data)))
    if not SAYS_ROCM.search(data):
        return Lanes(includes)
    file = CudaFile("", data)
    wide = wave(file).other_width
    return Lanes(includes, wide[2], _depending(file, wide[0])) if wide else Lanes(includes)


def narrow(file: CudaFile) -> tuple[int, int] | None:
    """Return the first place where a file's shared code works with 32 lanes."""
    found = [(file.tokens[site.at].start, file.tokens[site.at].end) for site in wave(file).sites if site.call]
    found += [(one.start, one.end) for one in arithmetic(file)]
    return min(found, default=None)


def _depending(file: CudaFile, at: int) -> tuple[str, ...]:
    """Return the names of a file that depend on its code for ROCm alone; none where there is other such code."""
    bodies: list[tuple[bytes, int, int]] = [
        (one.name.text, file.token_at(one.start), file.token_at(one.end)) for one in file.functions
    ]
    bodies += [(one.name.text, one.first, one.last) for macros in file.macros.values() for one in macros]
    known: set[bytes] = set()
    index = file.token_at(at)
    own = next((name for name, first, last in bodies if first <= index < last), None)
    known.add(own if own is not None else file.tokens[index].text)
    before = 0
    while before < len(known) <= _MOST_NAMES:
        before = len(known)
        for name, first, last in bodies:
            if name not in known and any(
                one.kind == Kind.NAME and one.text in known for one in file.tokens[first:last]
            ):
                known.add(name)
    for branch in file.branches:
        if branch.nvidia is not False:
            continue
        first, last = file.token_at(branch.start), file.token_at(branch.end)
        known.update(name for name, begins, ends in bodies if first <= begins and ends <= last)
    return tuple(sorted(name.decode("utf-8", "replace") for name in known)) if len(known) <= _MOST_NAMES else ()


def left_to_a_person(issues: Sequence[Issue], why: str) -> list[Issue]:
    """Return issues whose rewrites to 32 lanes are not made, because code for ROCm says otherwise."""
    return [_left(issue, why) if _to_32(issue) else issue for issue in issues]


def _to_32(issue: Issue) -> bool:
    rewrites = issue.outcome is not Outcome.MANUAL and bool(issue.edits)
    return rewrites and (issue.rule in _RULES or any(b"warp32" in edit.text for edit in issue.edits))


def _left(issue: Issue, why: str) -> Issue:
    return msgspec.structs.replace(
        issue,
        outcome=Outcome.MANUAL,
        message=f"{issue.message.rstrip('.')}. It is not rewritten: {why}",
        remedy="Work with the same number of lanes in both: 32 on every GPU, or those of the wavefront.",
        edits=(),
        needs=(),
    )
