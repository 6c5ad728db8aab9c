"""Telling what a file's ROCm side, written beside it, has settled."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.build.kinds import destination
from rocmend.port.build.write import ported
from rocmend.port.records import Issue, Outcome

__all__ = ["settled"]

_MAX_BYTES = 64 << 20
_OF_ROCM = re.compile(rb"(?<=[\w.])-rocm(?=\.(?:txt|in)(?![\w.-]))")


def settled(root: Path, path: str, issues: Iterable[Issue]) -> frozenset[Issue]:
    """Return the issues of a file whose rewrites stand in the file beside it.

    Args:
        root: The project's folder.
        path: The file, relative to it.
        issues: Those found in the file.

    Returns:
        None of them where there is no such file, or where it holds something else than the rewrites: then somebody has
        changed it, and what it holds is not known to be right.
    """
    where = destination(path)
    if where == path:
        return frozenset()
    try:
        with Beneath(root) as tree:
            before, after = (tree.document(one, _MAX_BYTES) for one in (path, where))
    except (OSError, DataError):
        return frozenset()
    rewritten = [issue for issue in issues if issue.edits]
    automatic = [issue for issue in rewritten if issue.outcome is Outcome.AUTO]
    for made in (rewritten, automatic):
        if made and _same(ported(path, before, made), after):
            return frozenset(made)
    return frozenset()


def _same(one: bytes, other: bytes) -> bool:
    """Tell whether two files are the same, but for lists of requirements that one names by their ROCm sides."""
    return _OF_ROCM.sub(b"", one) == _OF_ROCM.sub(b"", other)
