"""Findings for a person that a port keeps: rules no longer see them in what it wrote, and they are still open.

A port renames what rules look for (``__shfl_sync`` becomes ``warp32_shfl_sync``) and puts it where only ROCm compiles
it. What a person has to do about it does not change with that. Such a finding stays open until its line is marked with
``rocmend: ignore[ID] reason``. It is found again by its code, or by its rule on the ROCm side. One that is found
nowhere stays open too, until a comment in its file names its rule: what stands there instead may be as wrong. It is
closed where its rule found it on the ROCm side of the port and does so no more.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.core.errors import DataError, UnitError
from rocmend.core.units import count_text
from rocmend.port.classify import languages
from rocmend.port.cuda.marks import MARKS, without_marks
from rocmend.port.edits import applied
from rocmend.port.moves import OF_HIP, Moves
from rocmend.port.records import FileReport, Issue, KeptFinding, Language, Outcome
from rocmend.port.rocm_side import RULES, issues_on_rocm
from rocmend.port.state import Generation, digest, generations
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
    own = any(issue.rule in RULES for issue in unseen) and language is Language.CUDA
    there = (
        Counter((one.rule, _NUMBER.sub("0", one.message)) for one in issues_on_rocm("", after)) if own else Counter()
    )
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
        key = _about(issue)
        there[key] -= 1
        told = issue.severity, issue.message, issue.remedy, issue.snippet
        found.append(KeptFinding(issue.rule, issue.path, issue.line, *told, code, seen_on_rocm=there[key] >= 0))
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
) -> tuple[tuple[FileReport, ...], int, tuple[str, ...]]:
    """Return reports with the findings that ports of the project keep and that are still open, each once.

    Args:
        root: The project's folder.
        files: What rules found.
        rules: Ids of the rules that are used.
        paths: Of the files that are looked at: a file that is no longer where it was is looked for among them.
        max_file_bytes: Larger files are not read.

    Returns:
        The reports by path, how many findings comments close, and what there is to say of files that are gone.
    """
    by_path: dict[str, dict[KeptFinding, int]] = {}
    first: dict[str, tuple[Generation, str]] = {}
    gone: Counter[str] = Counter()
    moves = Moves(root, paths, max_file_bytes)
    for port in generations(root):
        counted = Counter(one for one in port.manifest.findings if one.rule in rules)
        for one, count in counted.items():
            path = one.path if one.path in paths else moves.new_path(port, one.path)
            if path:
                first.setdefault(path, (port, one.path))
                known = by_path.setdefault(path, {})
                known[one] = max(known.get(one, 0), count)
            elif moves.is_gone(one.path):
                gone[one.path] += count
    reports = {file.path: file for file in files}
    closed = 0
    for path, kept in by_path.items():
        report, suppressed = _with(
            root, path, reports.get(path), Counter(kept), max_file_bytes=max_file_bytes, origin=first[path]
        )
        closed += suppressed
        if report is not None:
            reports[path] = report
    notes = tuple(
        f"{path} is gone with {count_text(count, 'finding')} for a person: if its code is elsewhere, look at it there."
        for path, count in sorted(gone.items())
    )
    return tuple(report for _, report in sorted(reports.items())), closed, notes


def _with(  # noqa: PLR0913  a file, what is known of it, and where that is from
    root: Path,
    path: str,
    report: FileReport | None,
    kept: Counter[KeptFinding],
    *,
    max_file_bytes: int,
    origin: tuple[Generation, str],
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
    language = Language.CUDA if path.endswith(OF_HIP) else report.language  # a source for HIP is not written
    fresh = Counter(_at(issue) for issue in report.issues)
    by_code, lost = _found(path, data, language, kept)
    found = [issue for issue in by_code if not _taken(fresh, _at(issue))]
    if language is Language.CUDA and any(one.rule in RULES for one in kept):
        known = {(issue.rule, line) for issue in (*report.issues, *by_code) for line in _lines(issue)}
        again = [issue for issue in issues_on_rocm(path, data) if not known & {(issue.rule, n) for n in _lines(issue)}]
        found += (issue for issue in again if issue.outcome is Outcome.MANUAL)
        lost = _left(lost, again)
    marks = Suppressions(data)
    left = marks.left(found)
    issues = without_marks([*report.issues, *found])
    dropped = {id(issue) for issue in found} - {id(issue) for issue in left}
    issues = [issue for issue in issues if id(issue) not in dropped]
    closing = _closing(marks, origin, {one.rule for one in lost})
    closing.subtract(issue.rule for issue in found if id(issue) in dropped)
    place = _File(path, data, [at.start() for at in re.finditer(rb"\n", data)])
    for one in lost:
        closing[one.rule] -= 1
        if closing[one.rule] < 0:
            issues.append(_lost(one, place))
    issues.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    return msgspec.structs.replace(report, issues=tuple(issues)), len(dropped)


def _closing(marks: Suppressions, origin: tuple[Generation, str], rules: AbstractSet[str]) -> Counter[str]:
    """Return how many comments about some rules a file has that its original had not."""
    if not any(marks.count(rule) for rule in rules):
        return Counter()
    port, path = origin
    entry = next((one for one in port.manifest.entries if one.path == path), None)
    try:
        before = Suppressions((port.original(entry) if entry else None) or b"")
    except DataError:
        return Counter()
    return Counter({rule: marks.count(rule) - before.count(rule) for rule in rules})


def _lines(issue: Issue) -> range:
    return range(issue.line, issue.end_line + 1)


def _left(lost: Iterable[KeptFinding], again: Iterable[Issue]) -> list[KeptFinding]:
    """Return what is lost, without what its rule finds elsewhere on the ROCm side, or found there once and no more."""
    others = Counter(issue.rule for issue in again)
    left = []
    for one in lost:
        others[one.rule] -= 1
        if others[one.rule] < 0 and not one.seen_on_rocm:
            left.append(one)
    return left


def _lost(one: KeptFinding, place: _File) -> Issue:
    """Return a finding whose code is nowhere, at the beginning of its file."""
    said = one.message if one.message.endswith((".", "!", "?")) else f"{one.message}."
    return msgspec.structs.replace(
        _issue(one, place, (0, 0)),
        message=f"could not be found again: look at it. It was on line {one.line} of the original: {said}",
        remedy=f"{one.remedy} Then say so in the file: `rocmend: ignore[{one.rule}] reason` in a comment.".strip(),
    )


def _found(
    path: str, data: bytes, language: Language, kept: Counter[KeptFinding]
) -> tuple[list[Issue], list[KeptFinding]]:
    """Return what is kept for a file at its place today, and what is no longer there.

    Findings that stood on one line stand at one place.
    """
    found: list[Issue] = []
    lost: list[KeptFinding] = []
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
                found += (_issue(one, place, (0, 0)) for one in there)
            elif number < len(places):
                at = places[number]
                start, end = words[at].start, words[at + len(code) - 1].end
                found += (_issue(one, place, (start, end)) for one in there)
            else:
                lost += there
    return found, lost


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


def _about(issue: Issue) -> tuple[str, str]:
    return issue.rule, _NUMBER.sub("0", issue.message)


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
