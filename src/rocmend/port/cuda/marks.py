"""The comments that a port writes for a person: how they begin, and which finding each is of."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from rocmend.port.records import Issue

__all__ = ["MARKS", "beginning", "comment", "without_marks"]

MARKS = "CU46"
"""The rule that finds them."""
_WIDTH = 97
_BEGINNING = 60
_TOLD = re.compile(r"([A-Z]{2}\d{2}) is still open: (.*)", re.DOTALL)


def comment(issue: Issue) -> bytes:
    """Return an issue as a comment of one line, with no way out of it; what to do is said where findings are listed."""
    words = issue.message.rstrip(".").encode("ascii", "replace").decode().split()
    text = textwrap.shorten(f"ROCM {issue.rule}: {' '.join(words)}", _WIDTH, placeholder=" ...", break_on_hyphens=False)
    return f"// {text.rstrip(chr(92))}\n".encode()


def beginning(text: bytes) -> bytes:
    """Return the expression of a comment's beginning; numbers in it are those of lines, which a port moves."""
    mark, _, rest = text.partition(b"\n")[0][:_BEGINNING].partition(b": ")
    return re.escape(mark + b": ") + re.sub(rb"\d+", rb"\\d+", re.escape(rest.rstrip(b"0123456789")))


def without_marks(issues: Sequence[Issue]) -> list[Issue]:
    """Return issues of a file without the comments of an earlier port for one of the others, each for one."""
    marks = (_TOLD.match(issue.message) for issue in issues if issue.rule == MARKS)
    rules = {told[1] for told in marks if told}
    if not rules:
        return list(issues)
    waiting: dict[str, list[re.Pattern[bytes]]] = {}
    for issue in issues:
        if issue.rule in rules:
            waiting.setdefault(issue.rule, []).append(re.compile(beginning(comment(issue))))
    found = []
    for issue in issues:
        told = _TOLD.match(issue.message) if issue.rule == MARKS else None
        if told is not None:
            text = f"// ROCM {told[1]}: {told[2]}".encode("ascii", "replace")
            others = waiting.get(told[1], [])
            at = next((number for number, other in enumerate(others) if other.match(text)), -1)
            if at >= 0:
                del others[at]
                continue
        found.append(issue)
    return found
