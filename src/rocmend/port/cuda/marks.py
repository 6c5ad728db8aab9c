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
    others = [issue for issue in issues if issue.rule != MARKS]
    left = {id(issue): re.compile(beginning(comment(issue))) for issue in others}
    by_rule: dict[str, list[Issue]] = {}
    for issue in others:
        by_rule.setdefault(issue.rule, []).append(issue)
    found = []
    for issue in issues:
        told = _TOLD.match(issue.message) if issue.rule == MARKS else None
        if told is not None:
            text = f"// ROCM {told[1]}: {told[2]}".encode("ascii", "replace")
            one = next((one for one in by_rule.get(told[1], ()) if id(one) in left and left[id(one)].match(text)), None)
            if one is not None:
                del left[id(one)]
                continue
        found.append(issue)
    return found
