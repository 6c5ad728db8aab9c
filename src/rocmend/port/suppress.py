"""Comments that tell rules to leave a place alone: ``# rocmend: ignore[PY01] reason``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator

from rocmend.port.records import Issue

__all__ = ["Suppressions"]

_MARK = re.compile(rb"(?:#|//|/\*|--|;)[ \t]*rocmend:[ \t]*ignore\[([A-Za-z0-9, \t]+)\]")


class Suppressions:
    """The suppressing comments of one file.

    A comment holds for its own line, and where nothing else stands on its line, for the next line of code too: also
    for the one after the ``#endif``, where the comment ends what only ROCm compiles.
    """

    def __init__(self, data: bytes) -> None:
        self._by_line: dict[int, set[str]] = {}
        self._named: Counter[str] = Counter()
        if b"rocmend:" not in data:
            return
        starts = [0, *(match.end() for match in re.finditer(rb"\n", data))]
        for match in _MARK.finditer(data):
            names = {name.strip().upper().decode() for name in match.group(1).split(b",")}
            self._named.update(names)
            line = bisect_right(starts, match.start())
            self._by_line.setdefault(line, set()).update(names)
            if not data[starts[line - 1] : match.start()].strip(b" \t\xef\xbb\xbf"):
                for held in _next_lines(data, starts, line):
                    self._by_line.setdefault(held, set()).update(names)

    def count(self, rule: str) -> int:
        """Return how many comments name a rule."""
        return self._named[rule]

    def hold_for(self, issue: Issue) -> bool:
        """Tell whether an issue's first or last line is marked with its rule."""
        return any(issue.rule in self._by_line.get(line, ()) for line in (issue.line, issue.end_line))

    def left(self, issues: Iterable[Issue]) -> tuple[Issue, ...]:
        """Return the issues that no comment suppresses."""
        return tuple(issue for issue in issues if not self._by_line or not self.hold_for(issue))


_MOST_LINES = 256
"""Of other comments and of the other side of a gate that may stand between a comment and its code."""
_COMMENT = re.compile(rb"[ \t]*(?://|#[ \t]*rocmend:)")
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(if|ifdef|ifndef|el\w+|endif)\b")


def _next_lines(data: bytes, starts: list[int], line: int) -> Iterator[int]:
    """Yield the lines that a comment alone on its line holds for: the next one, and the next one of code."""
    yield line + 1
    left = 0  # conditionals whose other branches are passed over, to their end
    for number in range(line + 1, min(len(starts), line + _MOST_LINES) + 1):
        here = data[starts[number - 1] : starts[number] if number < len(starts) else len(data)]
        directive = _DIRECTIVE.match(here)
        if directive is None and not left and not _COMMENT.match(here):
            yield number
            return
        if directive is None:
            continue
        if directive[1].startswith(b"if"):
            if not left:
                yield number
                return
            left += 1
        elif directive[1] == b"endif":
            left = max(0, left - 1)
        elif not left:
            left = 1
