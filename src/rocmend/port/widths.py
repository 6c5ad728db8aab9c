"""Files that disagree on the lanes of a warp: one that counts 32, and one that it includes with another ROCm code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from rocmend.core.records import Severity
from rocmend.port.cuda.marks import without_marks
from rocmend.port.includes import Includes
from rocmend.port.look import Look
from rocmend.port.nesting import NestingError
from rocmend.port.records import FileReport, Issue, Lanes, Language, Outcome
from rocmend.port.state import digest
from rocmend.port.suppress import Suppressions

__all__ = ["by_width"]

_RULE = "CU07"


def by_width(root: Path, seen: Sequence[Look], max_file_bytes: int) -> list[Look]:
    """Return looks in which what counts 32 lanes against a file that it includes is left to a person.

    Args:
        root: The project's folder.
        seen: What was found in its files.
        max_file_bytes: Larger files are not read.
    """
    known = {one.path: one.lanes for one in seen if one.lanes is not None}
    wide = {path: own for path, own in known.items() if own.wide}
    if not wide:
        return list(seen)
    files = _Files(root, known, max_file_bytes)
    return [
        files.checked(one, wide) if one.reads is Language.CUDA and one.lanes and one.path not in wide else one
        for one in seen
    ]


class _Files(Includes):
    """The C++ sources of a project, and what each includes."""

    def checked(self, one: Look, wide: Mapping[str, Lanes]) -> Look:
        """Return a look; where it depends on a wide file's code for ROCm, with nothing rewritten to 32 lanes."""
        reached = self.closure(one.path)
        others = [self.bytes_of(path) for path in reached if path not in wide]
        header = next((path for path in sorted(reached & wide.keys()) if _uses(others, wide[path].names)), None)
        if header is None:
            return one
        data = self.bytes_of(one.path)
        report = one.report or FileReport(one.path, Language.CUDA, len(data), digest(data))
        why = (
            f"{wide[header].wide} in the code for ROCm of {header}, which it includes, works with other than 32 lanes."
        )
        return msgspec.structs.replace(one, report=_with(report, data, why))


def _uses(texts: Iterable[bytes], names: Sequence[str]) -> bool:
    """Tell whether one of the texts has one of the names; where none is known, it may."""
    if not names:
        return True
    words = re.compile(rb"\b(?:" + b"|".join(re.escape(name.encode()) for name in names) + rb")\b")
    return any(words.search(text) for text in texts)


def _with(report: FileReport, data: bytes, why: str) -> FileReport:
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.wave.lanes import left_to_a_person, narrow

    issues = left_to_a_person(report.issues, why)
    if issues == list(report.issues) and not any(issue.rule == _RULE for issue in issues):
        try:
            place = narrow(CudaFile(report.path, data))
        except (NestingError, RecursionError):
            place = None
        if place is None:
            return report
        issues.append(_disagrees(report.path, data, place, why))
    issues = list(Suppressions(data).left(without_marks(issues)))
    issues.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    return msgspec.structs.replace(report, issues=tuple(issues), wide=why)


def _disagrees(path: str, data: bytes, place: tuple[int, int], why: str) -> Issue:
    start, end = place
    head = data.rfind(b"\n", 0, start) + 1
    tail = data.find(b"\n", start)
    line = data.count(b"\n", 0, start) + 1
    return Issue(
        rule=_RULE,
        path=path,
        line=line,
        column=len(data[head:start].decode("utf-8", "replace")) + 1,
        end_line=line,
        start=start,
        end=end,
        severity=Severity.ERROR,
        outcome=Outcome.MANUAL,
        message=f"warps of 32 lanes here, but {why}",
        remedy="Work with the same number of lanes in both: 32 on every GPU, or those of the wavefront.",
        snippet=data[head : tail if tail >= 0 else len(data)].decode("utf-8", "replace").strip()[:160],
    )
