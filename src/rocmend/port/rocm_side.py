"""What rules find on the ROCm side of a ported source: in what ROCm compiles of it, with the names of the original."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rocmend.port.cuda.file import CudaFile
from rocmend.port.nesting import NestingError
from rocmend.port.records import Issue, Language
from rocmend.port.rule import rules
from rocmend.port.wave.intrinsics import INTRINSICS

__all__ = ["RULES", "issues_on_rocm", "rocm_side"]

RULES = frozenset(("CU30", "CU31"))
"""Rules about how lanes run: what a port renames, and puts where only ROCm compiles it, changes nothing about that."""

_ORIGINALS = {one.helper: name for name, one in INTRINSICS.items()} | {b"warp32_groups": b"cg"}
"""Names that a port writes, each with a shorter one that rules know."""


def issues_on_rocm(path: str, data: bytes) -> Iterator[Issue]:
    """Yield what these rules find on the ROCm side of a source, at its place in the source.

    Args:
        path: The source.
        data: Its bytes.
    """
    try:
        side = CudaFile(path, rocm_side(CudaFile(path, data)))
        found = [issue for rule in rules(Language.CUDA) if rule.id in RULES for issue in rule.issues(side)]
    except (NestingError, RecursionError):
        return
    for issue in found:
        start = data.rfind(b"\n", 0, issue.start) + 1
        line = data[start : data.find(b"\n", start) % (len(data) + 1)]
        yield msgspec.structs.replace(issue, snippet=line.decode("utf-8", "replace").strip())


def rocm_side(file: CudaFile) -> bytes:
    """Return what ROCm compiles of a source, with the same places: the rest is blank, and so are its conditions.

    Conditions on names that are not known stay, with all their branches.
    """
    made = bytearray(file.data)
    for token in file.tokens:
        original = _ORIGINALS.get(token.text)
        if original is not None:
            made[token.start : token.end] = original.ljust(token.end - token.start)
    for number, group in enumerate(file.groups):
        members = file.members(number)
        if group.last < 0 or any(branch.rocm is None for branch in members):
            continue
        kept = [(branch.start, branch.end) for branch in members if branch.rocm]
        at = group.start
        for start, end in (*kept, (group.end, group.end)):
            _blank(made, at, start)
            at = end
    return bytes(made)


def _blank(made: bytearray, start: int, end: int) -> None:
    for at in range(start, end):
        if made[at] not in b"\r\n":
            made[at] = ord(" ")
