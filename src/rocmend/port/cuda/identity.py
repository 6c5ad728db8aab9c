"""What the NVIDIA side of a source is: the proof that a port changed nothing there."""

from __future__ import annotations

from collections.abc import Mapping

from rocmend.port.cuda.conditions import condition
from rocmend.port.cuda.file import CudaFile

__all__ = ["broken", "restored"]

_GATES: Mapping[bytes, int | None] = {b"USE_ROCM": None}


def restored(data: bytes) -> bytes:
    """Return a source without its ROCm side: what ``unifdef -UUSE_ROCM`` gives.

    Where the last line is an ``#endif`` that goes and that no line end follows, the line before it loses its own: a
    file that ended without a line end does so again, where unifdef adds one. Constant conditions stay: unifdef takes
    ``#if 0 && X`` away.
    """
    if b"USE_ROCM" not in data:
        return data
    file = CudaFile("", data)
    dropped: list[tuple[int, int]] = []
    renamed: dict[int, bytes] = {}
    members: dict[int, list[int]] = {}
    for branch in file.branches:
        members.setdefault(branch.group, []).append(branch.directive)
    for number, group in enumerate(file.groups):
        if group.last >= 0:
            _fold(file, members[number], group.last, dropped, renamed)
    return _without(file, dropped, renamed)


def _fold(
    file: CudaFile, members: list[int], last: int, dropped: list[tuple[int, int]], renamed: dict[int, bytes]
) -> None:
    """Decide for the branches of one group what goes and which directives are written otherwise."""
    ends = [file.directives[number] for number in [*members[1:], last]]
    kept = taken = False
    for number, end in zip(members, ends, strict=True):
        directive = file.directives[number]
        words = file.tokens[directive.first + 2 : directive.last]
        # As for unifdef, a constant condition (`#if 0`) is the author's: only what asks for a gate is decided.
        asks = directive.name == b"else" or any(word.text in _GATES for word in words)
        value = False if taken else condition(directive.name, words, _GATES) if asks else None
        if value is False:
            dropped.append((directive.start, end.start))
            continue
        if value is True:
            taken = True
            if not kept:
                dropped.append((directive.start, directive.end))
            elif directive.name != b"else":
                renamed[number] = b"else"
            continue
        if not kept and directive.name.startswith(b"el"):
            renamed[number] = directive.name[2:] + b"  "  # unifdef keeps the columns of what follows
        kept = True
    if not kept:
        dropped.append((file.directives[last].start, file.directives[last].end))


def _without(file: CudaFile, dropped: list[tuple[int, int]], renamed: dict[int, bytes]) -> bytes:
    data = file.data
    changes: list[tuple[int, int, bytes]] = [(start, end, b"") for start, end in dropped]
    for number, name in renamed.items():
        directive = file.directives[number]
        word = file.tokens[directive.first + 1]
        end = word.end if name != b"else" else file.tokens[directive.last - 1].end
        changes.append((word.start, end, name))
    parts: list[bytes] = []
    at = 0
    for start, end, text in sorted(changes):
        if start < at:
            at = max(at, end)
            continue
        parts += [data[at:start], text]
        at = end
    result = b"".join([*parts, data[at:]])
    last = len(data) and any(end == len(data) for _, end in dropped) and not data.endswith(b"\n")
    if last and result.endswith(b"\n"):
        result = result[: -2 if result.endswith(b"\r\n") else -1]
    return result


def broken(before: bytes, after: bytes) -> str | None:
    """Return why the NVIDIA side of a ported source is not the original's; None where it is, byte for byte."""
    one, other = restored(before), restored(after)
    if one == other:
        return None
    same = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    line = one.count(b"\n", 0, same) + 1
    return f"without USE_ROCM it differs from the original from line {line} on"
