"""Porting one file: its rewrites made, proven to leave the NVIDIA side as it was and nothing to a second port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.errors import DataError, UnitError
from rocmend.port.classify import languages
from rocmend.port.findings import findings
from rocmend.port.kept import no_longer_seen
from rocmend.port.languages import destination, identity_broken, ported
from rocmend.port.records import NO_TIME_LEFT, Edit, FileReport, Issue, KeptFinding, Language, Outcome
from rocmend.port.state import digest
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.supply import headers_in, placed

__all__ = ["Rewrite", "Rewritten", "rewrite", "taken"]

CHANGED_SINCE = "it changed since the analysis; run again"


class Rewritten(msgspec.Struct, frozen=True, array_like=True, tag="written"):
    """A file's port.

    Attributes:
        path: The file.
        after: Its port; None where nothing in it changes, or where it is left alone.
        reason: Why it is left alone; empty where it is not.
        kept: What is left for a person in it and rules do not see in its port.
    """

    path: str
    after: bytes | None = None
    reason: str = ""
    kept: tuple[KeptFinding, ...] = ()


class Rewrite(msgspec.Struct, frozen=True, array_like=True, tag="write"):
    """A file to be ported.

    Attributes:
        path: Relative to the project.
        sha256: Of the content that the issues were found in.
        language: The one that it is written back as.
        issues: Those whose edits are to be made, and those that a person has to see.
        reach: How it reaches what the port gives the project (``languages.ported``).
        suggestions: Whether suggested rewrites are made too.
        narrowed: Whether issues of the file may be left out of those on purpose.
        wide: Why nothing in the file is rewritten to warps of 32 lanes; empty where it is.
    """

    path: str
    sha256: str
    language: Language
    issues: tuple[Issue, ...]
    reach: str
    suggestions: bool = False
    narrowed: bool = False
    wide: str = ""

    def lost(self, reason: str) -> Rewritten:
        """Return the result of a file that is left alone."""
        return Rewritten(self.path, reason=reason)

    def left_out(self) -> Rewritten:
        """Return the result of a file that there was no time for."""
        return self.lost(NO_TIME_LEFT)


def taken(issues: Iterable[Issue], *, suggestions: bool) -> list[Issue]:
    """Return the issues that a writer has to know: rewrites that are to be made, and what a person has to see."""

    def counts(issue: Issue) -> bool:
        made = issue.outcome is Outcome.AUTO or (suggestions and issue.outcome is Outcome.SUGGEST)
        return (made and bool(issue.edits)) or issue.outcome is Outcome.MANUAL

    return [issue for issue in issues if counts(issue)]


def rewrite(root: Path, task: Rewrite, max_file_bytes: int) -> Rewritten:
    """Return a file's port, or why it is left alone: it changed, its edits contradict each other, a proof fails."""
    try:
        data, _ = read_steady(root, task.path, max_file_bytes)
        if digest(data) != task.sha256:
            return task.lost(CHANGED_SINCE)
        after = _ported(task, data)
        again = _read_again(task, after) if after != data else None
        refused = _refused(task, data, after, again) if after != data else None
        kept = (
            no_longer_seen(task.language, task.issues, data, after, again.issues) if again and refused is None else ()
        )
    except NotReadError as error:
        return task.lost(str(error))
    except (UnitError, DataError) as error:
        return task.lost(error.message)
    except Exception as error:  # noqa: BLE001  a writer that fails costs its file, not the run
        return task.lost(f"writing it failed: {type(error).__name__}: {error}")
    if refused is not None:
        return task.lost(refused)
    return Rewritten(task.path, after if after != data else None, kept=kept)


def _read_again(task: Rewrite, after: bytes) -> FileReport | None:
    """Return what rules find in a port; None where they do not read it."""
    path = destination(task.language, task.path)
    kinds = languages(path, after)
    if not kinds:
        return None
    report, _ = findings(path, after, kinds)
    if not task.wide:
        return report
    from rocmend.port.wave.lanes import left_to_a_person

    return msgspec.structs.replace(report, issues=tuple(left_to_a_person(report.issues, task.wide)))


def _refused(task: Rewrite, data: bytes, after: bytes, again: FileReport | None) -> str | None:
    """Return why a port is not offered; None where it is."""
    broken = identity_broken(task.language, task.path, data, after, task.reach)
    if broken is not None:
        return f"its NVIDIA side would change: {broken}"
    moving = _not_steady(task, data, after, again) if again else None
    if moving is not None:
        return f"porting it again would change it again{moving}. It may be malformed: port it by hand"
    return None


def _not_steady(task: Rewrite, data: bytes, after: bytes, report: FileReport) -> str | None:
    """Return where a second port would change a port; None where it would not."""
    path = destination(task.language, task.path)
    kinds = languages(path, after)
    if report.skipped:
        return f" (it could not be read again: {report.skipped.rstrip('.')})"
    held = {issue.unless for issue in task.issues}
    there = [issue for issue in report.issues if not issue.unless or issue.unless in held]
    issues = taken(there, suggestions=task.suggestions)
    if task.narrowed:
        issues = _as_narrow(task, data, issues)
    if kinds[0] is Language.CUDA:
        issues = placed(issues, path, str(PurePosixPath(path).parent / PurePosixPath(task.reach).parent))
    second = Rewrite(path, "", kinds[0], tuple(issues), task.reach)
    try:
        if not issues or _ported(second, after) == after:
            return None
    except UnitError:  # what a second port would write cannot even be gated
        pass
    first = next((issue for issue in issues if issue.edits), issues[0])
    line = data.count(b"\n", 0, max(0, data.find(first.snippet.encode()))) + 1
    return f" ({first.rule}, near line {line})"


def _as_narrow(task: Rewrite, data: bytes, issues: list[Issue]) -> list[Issue]:
    """Return the issues of a port without those that its original has too and was asked to keep."""

    def key(issue: Issue) -> tuple[str, str]:
        return issue.rule, " ".join(issue.snippet.split())

    before, _ = findings(task.path, data, languages(task.path, data))
    every = taken(before.issues, suggestions=task.suggestions)
    kept = Counter(map(key, every)) - Counter(map(key, task.issues))
    rules = {issue.rule for issue in task.issues}
    return [issue for issue in issues if issue.rule in rules and not kept[key(issue)]]


def _ported(task: Rewrite, data: bytes) -> bytes:
    """Return a file's port; a CUDA source includes what its rewrites use, whether or not a rule saw to that."""
    after = ported(task.language, task.path, data, task.issues, task.reach)
    needs = task.language is Language.CUDA and any(issue.needs for issue in task.issues)
    if not needs or headers_in(b"", after):
        return after
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.cuda.regions import cut_before

    file = CudaFile(task.path, data)
    at = cut_before(file, file.tokens[0].start)
    first = task.issues[0]
    include = Edit(at, at, b'#include "%b"\n' % task.reach.encode())
    missing = msgspec.structs.replace(first, start=at, end=at, outcome=Outcome.AUTO, edits=(include,))
    return ported(task.language, task.path, data, (*task.issues, missing), task.reach)
