"""Findings for a person that a port keeps: rules no longer see them in what it wrote, and they are still open.

A port renames what rules look for (``__shfl_sync`` becomes ``warp32_shfl_sync``) and puts it where only ROCm compiles
it. What a person has to do about it does not change with that. Such a finding stays open until its line is marked with
``rocmend: ignore[ID] reason``, or its code is no longer what ROCm compiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.core.errors import UnitError
from rocmend.port.classify import languages
from rocmend.port.cuda.marks import MARKS, without_marks
from rocmend.port.edits import applied
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
    seen = Counter(_same(issue) for issue in again)
    edits = [edit for issue in issues if issue.outcome is not Outcome.MANUAL for edit in issue.edits]
    words: list[str] = []
    found = []
    for issue in issues:
        if issue.outcome is not Outcome.MANUAL or issue.rule == MARKS:
            continue
        if seen[_same(issue)] > 0:
            seen[_same(issue)] -= 1
            continue
        if not words:
            words = [word.text for word in _words(language, after)]
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
        code = next((way for way in ways if way and next(_places(words, way), None) is not None), ())
        found.append(
            KeptFinding(
                issue.rule, issue.path, issue.line, issue.severity, issue.message, issue.remedy, issue.snippet, code
            )
        )
    return tuple(found)


def with_kept(
    root: Path, files: Sequence[FileReport], rules: AbstractSet[str], paths: AbstractSet[str], max_file_bytes: int
) -> tuple[tuple[FileReport, ...], int]:
    """Return reports with the findings that ports of the project keep and that are still open, each once.

    Args:
        root: The project's folder.
        files: What rules found.
        rules: Ids of the rules that are used.
        paths: Of the files that are looked at.
        max_file_bytes: Larger files are not read.

    Returns:
        The reports by path, and how many findings comments close.
    """
    by_path: dict[str, dict[KeptFinding, int]] = {}
    for port in generations(root):
        counted = Counter(one for one in port.manifest.findings if one.rule in rules and one.path in paths)
        for one, count in counted.items():
            known = by_path.setdefault(one.path, {})
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
    found = list(_found(data, report.language, kept))
    fresh = {(issue.rule, issue.line) for issue in report.issues}
    found = [issue for issue in found if (issue.rule, issue.line) not in fresh]
    left = Suppressions(data).left(found)
    issues = without_marks([*report.issues, *found])
    dropped = {id(issue) for issue in found} - {id(issue) for issue in left}
    issues = [issue for issue in issues if id(issue) not in dropped]
    issues.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    return msgspec.structs.replace(report, issues=tuple(issues)), len(dropped)


def _found(data: bytes, language: Language, kept: Counter[KeptFinding]) -> Iterator[Issue]:
    """Yield what is kept for a file at its place today; what is no longer there is closed."""
    words = _words(language, data)
    texts = [word.text for word in words]
    taken: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for one, count in sorted(kept.items(), key=lambda item: item[0].line):
        if not one.code:
            yield from (_issue(one, data, 0, 0) for _ in range(count))
            continue
        used = taken[one.rule, one.code]
        taken[one.rule, one.code] += count
        for at in islice(_places(texts, one.code), used, used + count):
            yield _issue(one, data, words[at].start, words[at + len(one.code) - 1].end)


def _issue(one: KeptFinding, data: bytes, start: int, end: int) -> Issue:
    line = data.count(b"\n", 0, start) + 1
    return Issue(
        rule=one.rule,
        path=one.path,
        line=line,
        column=len(data[data.rfind(b"\n", 0, start) + 1 : start].decode("utf-8", "replace")) + 1,
        end_line=line + data.count(b"\n", start, max(start, end - 1)),
        start=start,
        end=end,
        severity=one.severity,
        outcome=Outcome.MANUAL,
        message=one.message,
        remedy=one.remedy,
        snippet=one.snippet,
    )


def _same(issue: Issue) -> tuple[str, str]:
    return issue.rule, " ".join(issue.snippet.split())


class _Word(NamedTuple):
    text: str
    start: int
    end: int


_PLAIN = re.compile(rb"\S+")


def _words(language: Language, data: bytes, *, whole: bool = True) -> list[_Word]:
    """Return the words of a file that ROCm reads, or all of a part of one."""
    if language is not Language.CUDA:
        return [_word(data, one.start(), one.end()) for one in _PLAIN.finditer(data)]
    from rocmend.port.cuda.file import CudaFile

    file = CudaFile("", data)
    return [_word(data, one.start, one.end) for one in file.tokens if not whole or file.on_rocm(one.start)]


def _word(data: bytes, start: int, end: int) -> _Word:
    return _Word(data[start:end].decode("utf-8", "replace"), start, end)


def _places(words: Sequence[str], code: Sequence[str]) -> Iterator[int]:
    """Yield where a sequence of words begins, without overlaps."""
    at, count = 0, len(code)
    while count and at + count <= len(words):
        try:
            at = words.index(code[0], at, len(words) - count + 1)
        except ValueError:
            return
        if list(words[at : at + count]) == list(code):
            yield at
            at += count
        else:
            at += 1
