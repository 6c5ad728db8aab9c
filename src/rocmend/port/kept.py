"""Findings for a person that a port keeps: rules no longer see them in what it wrote, and they are still open.

A port renames what rules look for (``__shfl_sync`` becomes ``warp32_shfl_sync``) and puts it where only ROCm compiles
it. What a person has to do about it does not change with that. Such a finding stays open until its line is marked with
``rocmend: ignore[ID] reason``, or its code is no longer what ROCm compiles.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.core.errors import UnitError
from rocmend.port.classify import languages
from rocmend.port.cuda.marks import MARKS, without_marks
from rocmend.port.edits import applied
from rocmend.port.moves import Moves
from rocmend.port.records import FileReport, Issue, KeptFinding, Language, Outcome
from rocmend.port.state import digest, generations
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.suppress import Suppressions

__all__ = ["no_longer_seen", "with_kept"]


def no_longer_seen(
    language: Language, issues: Iterable[Issue], data: bytes, after: bytes, again: Iterable[Issue]
) -> tuple[KeptFinding, ...]:
    """Return the findings for a person that rules do not see in a file's port.

    Args:
        language: The one that the file is read as.
        issues: What a port does about the file.
        data: The original.
        after: The port.
        again: What rules find in the port.
    """
    unseen = _unseen([issue for issue in issues if issue.outcome is Outcome.MANUAL and issue.rule != MARKS], again)
    if not unseen:
        return ()
    index = _Index(word.text for word in _words(language, after))
    edits = [edit for issue in issues if issue.outcome is not Outcome.MANUAL for edit in issue.edits]
    found = []
    for issue in unseen:
        start = data.rfind(b"\n", 0, issue.start) + 1
        end = data.find(b"\n", max(issue.start, issue.end - 1))
        end = len(data) if end < 0 else end
        inside = [
            msgspec.structs.replace(edit, start=edit.start - start, end=edit.end - start)
            for edit in edits
            if start <= edit.start and edit.end <= end
        ]
        try:
            texts = [applied(data[start:end], inside), data[start:end]]
        except UnitError:  # of two rules that say the same of a header: the port has put them together
            texts = [data[start:end]]
        ways = (tuple(word.text for word in _words(language, one, whole=False)) for one in texts)
        code = next((way for way in ways if way and index.places(way, 1)), ())
        found.append(
            KeptFinding(
                issue.rule, issue.path, issue.line, issue.severity, issue.message, issue.remedy, issue.snippet, code
            )
        )
    return tuple(found)


def _unseen(issues: Sequence[Issue], again: Iterable[Issue]) -> list[Issue]:
    """Return the issues that are not among those of a port: first those that say the same, then those of the line."""
    others = list(again)
    for same in (_said, _same):
        seen = Counter(map(same, others))
        left, others_left = [], Counter(map(same, issues))
        for issue in issues:
            if seen[same(issue)] > 0:
                seen[same(issue)] -= 1
            else:
                left.append(issue)
        others = [one for one in others if not _taken(others_left, same(one))]
        issues = left
    return list(issues)


def _taken(counts: Counter[tuple[str, ...]], key: tuple[str, ...]) -> bool:
    counts[key] -= 1
    return counts[key] >= 0


def with_kept(
    root: Path, files: Sequence[FileReport], rules: AbstractSet[str], paths: AbstractSet[str], max_file_bytes: int
) -> tuple[tuple[FileReport, ...], int]:
    """Return reports with the findings that ports of the project keep and that are still open, each once.

    Args:
        root: The project's folder.
        files: What rules found.
        rules: Ids of the rules that are used.
        paths: Of the files that are looked at: a file that is no longer where it was is looked for among them.
        max_file_bytes: Larger files are not read.

    Returns:
        The reports by path, and how many findings comments close.
    """
    by_path: dict[str, dict[KeptFinding, int]] = {}
    moves = Moves(root, paths, max_file_bytes)
    for port in generations(root):
        counted = Counter(one for one in port.manifest.findings if one.rule in rules)
        for one, count in counted.items():
            path = one.path if one.path in paths else moves.new_path(port, one.path)
            if path:
                known = by_path.setdefault(path, {})
                known[one] = max(known.get(one, 0), count)
    reports = {file.path: file for file in files}
    closed = 0
    for path, kept in by_path.items():
        report, suppressed = _with(root, path, reports.get(path), Counter(kept), max_file_bytes)
        closed += suppressed
        if report is not None:
            reports[path] = report
    return tuple(report for _, report in sorted(reports.items())), closed


def _with(
    root: Path, path: str, report: FileReport | None, kept: Counter[KeptFinding], max_file_bytes: int
) -> tuple[FileReport | None, int]:
    """Return a file's report with what is kept for it, and how many findings comments close."""
    try:
        data, _ = read_steady(root, path, max_file_bytes)
    except NotReadError:
        return report, 0  # a file that is gone has nothing open, one that cannot be read is reported as such
    if report is None:
        kinds = languages(path, data)
        report = FileReport(path, kinds[0] if kinds else Language.TEXT, len(data), digest(data))
    if report.skipped:
        return report, 0
    fresh = Counter(_at(issue) for issue in report.issues)
    found = [issue for issue in _found(path, data, report.language, kept) if not _taken(fresh, _at(issue))]
    left = Suppressions(data).left(found)
    issues = without_marks([*report.issues, *found])
    dropped = {id(issue) for issue in found} - {id(issue) for issue in left}
    issues = [issue for issue in issues if id(issue) not in dropped]
    issues.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    return msgspec.structs.replace(report, issues=tuple(issues)), len(dropped)


def _found(path: str, data: bytes, language: Language, kept: Counter[KeptFinding]) -> Iterator[Issue]:
    """Yield what is kept for a file at its place today; what is no longer there is closed.

    Findings that stood on one line stand at one place.
    """
    words = _words(language, data)
    index = _Index(word.text for word in words)
    place = _File(path, data, [at.start() for at in re.finditer(rb"\n", data)])
    by_code: dict[tuple[str, tuple[str, ...]], dict[int, list[KeptFinding]]] = {}
    for one, count in sorted(kept.items(), key=lambda item: item[0].line):
        code = one.code
        if language is not Language.CUDA:  # as an earlier version divided it into words
            code = tuple(word.text for word in _words(language, " ".join(code).encode(), whole=False))
        by_code.setdefault((one.rule, code), {}).setdefault(one.line, []).extend([one] * count)
    for (_, code), by_line in by_code.items():
        places = index.places(code, len(by_line)) if code else None
        for number, (_, there) in enumerate(sorted(by_line.items())):
            if places is None:  # never found, or not within the limit: it stays open
                yield from (_issue(one, place, (0, 0)) for one in there)
            elif number < len(places):
                at = places[number]
                start, end = words[at].start, words[at + len(code) - 1].end
                yield from (_issue(one, place, (start, end)) for one in there)


class _File(NamedTuple):
    path: str
    data: bytes
    ends: list[int]  # of its lines


def _issue(one: KeptFinding, file: _File, span: tuple[int, int]) -> Issue:
    start, end = span
    line = bisect_left(file.ends, start) + 1
    begin = file.ends[line - 2] + 1 if line > 1 else 0
    return Issue(
        rule=one.rule,
        path=file.path,
        line=line,
        column=len(file.data[begin:start].decode("utf-8", "replace")) + 1,
        end_line=bisect_left(file.ends, max(start, end - 1)) + 1,
        start=start,
        end=end,
        severity=one.severity,
        outcome=Outcome.MANUAL,
        message=one.message,
        remedy=one.remedy,
        snippet=one.snippet,
    )


def _same(issue: Issue) -> tuple[str, ...]:
    return issue.rule, " ".join(issue.snippet.split())


def _said(issue: Issue) -> tuple[str, ...]:
    return *_same(issue), _NUMBER.sub("0", issue.message)


def _at(issue: Issue) -> tuple[str, ...]:
    return issue.rule, str(issue.line), _NUMBER.sub("0", issue.message)


_NUMBER = re.compile(r"\d+")


class _Word(NamedTuple):
    text: str
    start: int
    end: int


_PLAIN = re.compile(rb"\\\\[nrt\"]|[\w\x80-\xff]+|[^\w\s]")
_LAYOUT = frozenset((b"\\n", b"\\r", b"\\t", b'\\"', *(sign.encode() for sign in "'\"`,;()\\")))
"""What a formatter adds and takes away."""
_COMMENT = re.compile(rb"^[ \t]*#(?!!).*$", re.MULTILINE)


def _words(language: Language, data: bytes, *, whole: bool = True) -> list[_Word]:
    """Return the words of a file that ROCm reads, or all of a part of one."""
    if language is not Language.CUDA:
        text = _COMMENT.sub(lambda comment: b" " * len(comment[0]), data) if whole else data
        found = [_word(data, one.start(), one.end()) for one in _PLAIN.finditer(text) if one[0] not in _LAYOUT]
        if language is Language.TEXT:  # commands of CMake have no case
            found = [word._replace(text=word.text.lower()) for word in found]
        return found
    from rocmend.port.cuda.file import CudaFile

    file = CudaFile("", data)
    return [_word(data, one.start, one.end) for one in file.tokens if not whole or file.on_rocm(one.start)]


def _word(data: bytes, start: int, end: int) -> _Word:
    return _Word(data[start:end].decode("utf-8", "replace"), start, end)


_MOST_STEPS = 4_000_000
"""Of comparing words, for all findings of a file."""


class _Index:
    """Where each word of a file stands, and with it sequences of words."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = list(words)
        self._at: dict[str, list[int]] = {}
        self._left = _MOST_STEPS
        for number, word in enumerate(self._words):
            self._at.setdefault(word, []).append(number)

    def places(self, code: Sequence[str], most: int) -> list[int] | None:
        """Return where a sequence begins, without overlaps, the first ones; None where there is no time left to look.

        Args:
            code: The sequence.
            most: How many are looked for.
        """
        self._left -= len(code)
        if self._left < 0:
            return None
        offset, there = min(((at, self._at.get(word, [])) for at, word in enumerate(code)), key=lambda one: len(one[1]))
        found: list[int] = []
        for place in there:
            start = place - offset
            if start < 0 or (found and start < found[-1] + len(code)):
                continue
            here = 0
            while here < len(code) and start + here < len(self._words) and self._words[start + here] == code[here]:
                here += 1
            self._left -= here + 1
            if here == len(code):
                found.append(start)
                if len(found) == most:
                    break
            if self._left < 0:
                return None
        return found
