"""Computing a port, in memory: what every file becomes, with the NVIDIA side of each proven before it is offered."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from rocmend.core.errors import DataError, UnitError, UsageError
from rocmend.port.languages import destination, identity_broken, ported
from rocmend.port.packages import Reach, Reaches
from rocmend.port.records import Analysis, Change, FileReport, Issue, Language, Outcome
from rocmend.port.settings import settings
from rocmend.port.state import digest, generations
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.supply import header_folder, headers_in, modules_in, placed

__all__ = ["STYLES", "LeftAlone", "Plan", "Planner", "Written", "plan"]


STYLES = ("inplace", "tree")


class LeftAlone(NamedTuple):
    """A file that has something to rewrite and is not rewritten."""

    path: str
    reason: str


class Plan(NamedTuple):
    """What a port would change.

    Attributes:
        changes: By path; support files among them.
        left_alone: Files that are not changed although something in them could be, and why.
        made: How many issues the changes rewrite.
    """

    changes: list[Change]
    left_alone: list[LeftAlone]
    made: int


class Written(NamedTuple):
    """A file's port.

    Attributes:
        report: Of the original.
        path: Where it goes.
        before: The original.
        after: The port.
        issues: Those that were made.
        folder: Where its support modules go.
    """

    report: FileReport
    path: str
    before: bytes
    after: bytes
    issues: list[Issue]
    folder: str


def plan(analysis: Analysis, *, style: str = "inplace", suggestions: bool = False) -> Plan:
    """Compute the port of a project.

    Args:
        analysis: Of the project as it is now.
        style: ``inplace``: gates in the files. ``tree``: C++ and CUDA sources as HIP in a folder ``rocm`` of their
            own, gates in all other files.
        suggestions: Whether suggested rewrites are made too.

    Returns:
        The changes that hold. A file whose proof fails, whose edits contradict each other or that changed since the
        analysis is left alone, with the reason.

    Raises:
        UsageError: There is no such style.
    """
    if style not in STYLES:
        raise UsageError("port", f"there is no style {style!r}.", next_step=f"Styles: {', '.join(STYLES)}.")
    if style == "tree":
        from rocmend.port.tree import TreePlanner

        return TreePlanner(analysis, suggestions=suggestions).plan()
    return Planner(analysis, suggestions=suggestions).plan()


class Planner:
    """Computes a port in place.

    Args:
        analysis: Of the project.
        suggestions: Whether suggested rewrites are made too.
    """

    def __init__(self, analysis: Analysis, *, suggestions: bool) -> None:
        self.root = Path(analysis.root)
        self.suggestions = suggestions
        self.reaches = Reaches(self.root)
        self.most_bytes = settings(self.root).max_file_bytes
        self.todo = [(file, taken) for file in analysis.files if not file.skipped and (taken := self.taken(file))]
        cuda = [file.path for file, _ in self.todo if file.language is Language.CUDA]
        self.headers = header_folder(self.root, cuda) if cuda else ""
        self.left: list[LeftAlone] = []
        self.compatibility: bytes | None = None

    def plan(self) -> Plan:
        """Return what the port would change."""
        written = [one for report, issues in self.todo if (one := self.tried(report, issues))]
        inside = [one for one in written if one.path == one.report.path]
        beside = [one for one in written if one.path != one.report.path]
        changes = [Change(one.path, one.before, one.after) for one in inside]
        changes += self.beside(beside)
        changes = self.supplied(inside, changes)
        kept = {change.path for change in changes}
        made = sum(bool(issue.edits) for one in written if one.path in kept for issue in one.issues)
        return Plan(sorted(changes, key=lambda change: change.path), sorted(self.left), made)

    def taken(self, file: FileReport) -> list[Issue]:
        """Return the issues that a writer has to know: rewrites that are to be made, and what a person has to see."""

        def counts(issue: Issue) -> bool:
            made = issue.outcome is Outcome.AUTO or (self.suggestions and issue.outcome is Outcome.SUGGEST)
            return (made and bool(issue.edits)) or issue.outcome is Outcome.MANUAL

        return [issue for issue in file.issues if counts(issue)]

    def tried(self, report: FileReport, issues: list[Issue]) -> Written | None:
        """Return a file's port; None where nothing in it changes or it is left alone."""
        try:
            data, _ = read_steady(self.root / report.path, self.most_bytes)
            if digest(data) != report.sha256:
                self.leave(report.path, "it changed since the analysis; run again")
                return None
            return self.written(report, data, issues)
        except NotReadError as error:
            self.leave(report.path, str(error))
        except (UnitError, DataError) as error:
            self.leave(report.path, error.message)
        return None

    def written(self, report: FileReport, data: bytes, issues: list[Issue]) -> Written | None:
        """Return a file's port, proven; None where nothing in it changes or the proof fails."""
        reach = Reach("", "")
        if report.language is Language.PYTHON:
            reach = self.reaches.of(report.path, data, needs={need for issue in issues for need in issue.needs})
        elif report.language is Language.CUDA:
            issues = placed(issues, report.path, self.headers)
        after = ported(report.language, report.path, data, issues, reach.module)
        if after == data:
            return None
        broken = identity_broken(report.language, report.path, data, after)
        if broken is not None:
            self.leave(report.path, f"its NVIDIA side would not be what it was: {broken}")
            return None
        return Written(report, destination(report.language, report.path), data, after, issues, reach.folder)

    def leave(self, path: str, reason: str) -> None:
        """Note that a file is not rewritten."""
        self.left.append(LeftAlone(path, reason))

    def beside(self, written: list[Written]) -> Iterator[Change]:
        """Yield the files beside originals; one that the project has already is its own, and stays."""
        if not written:
            return
        from rocmend.port.build.write import redirected

        made = redirected({one.report.path: one.after for one in written})
        for one in written:
            yield from self.new(one.path, made[one.path], f"{one.report.path} has its own file for ROCm, {one.path}")

    def new(self, path: str, data: bytes, taken: str) -> Iterator[Change]:
        """Yield a file that is to be made; nothing where it is there with this content."""
        try:
            there = (self.root / path).read_bytes()
        except FileNotFoundError:
            yield Change(path, None, data)
        except OSError as error:
            self.leave(path, f"cannot be made: {error.strerror}")
        else:
            if there != data and path in self.ours:
                self.leave(path, "an earlier port made it with other rules; `rocmend port undo` takes that back first")
            elif there != data:
                self.leave(path, f"{taken}, which is left as it is")

    def supplied(self, written: list[Written], changes: list[Change]) -> list[Change]:
        """Return the changes with the support files that they use; those that cannot have theirs are left alone."""
        support: dict[str, bytes] = {}
        users: dict[str, list[str]] = {}
        for one in written:
            for path, data in self.support(one, written):
                support[path] = data
                users.setdefault(path, []).append(one.path)
        failed: set[str] = set()
        for path, data in sorted(support.items()):
            there = self.root / path
            if there.exists() and there.read_bytes() != data and path not in self.ours:
                failed |= set(users[path])
                for user in users[path]:
                    self.leave(user, f"it needs {path}, and the project has a file of that name")
        kept = [change for change in changes if change.path not in failed]
        for path, data in sorted(support.items()):
            if set(users[path]) <= failed:
                continue
            there = self.root / path
            before = there.read_bytes() if there.exists() else None
            if before != data:
                kept.append(Change(path, before, data))
        return kept

    @cached_property
    def ours(self) -> frozenset[str]:
        """Return the files that ports made."""
        return frozenset(
            entry.path for one in generations(self.root) for entry in one.manifest.entries if not entry.before
        )

    def support(self, one: Written, written: list[Written]) -> Iterator[tuple[str, bytes]]:
        """Yield the support files that a ported file uses."""
        if one.report.language is Language.PYTHON:
            from rocmend.port.python.units import UNITS, source_of

            by_module = {unit.file.removesuffix(".py"): name for name, unit in UNITS.items()}
            for module in modules_in(one.before, one.after):
                yield f"{one.folder}/{module}.py".lstrip("/"), source_of(by_module[module])
        elif one.report.language is Language.CUDA:
            todo = headers_in(b"", one.after)
            seen = set(todo)
            while todo:
                name = todo.pop()
                data = self.header(name, written)
                yield f"{self.headers}/{name}".lstrip("/"), data
                inner = set(headers_in(b"", data)) - seen
                seen |= inner
                todo += sorted(inner)

    def header(self, name: str, written: list[Written]) -> bytes:
        """Return a support header as this project gets it."""
        from rocmend.port.cuda.write import HEADER

        if name != HEADER.decode():
            return files("rocmend.port.support").joinpath(name).read_bytes()
        if self.compatibility is None:
            from rocmend.port.cuda.compat import compatibility_header, uses

            there = self.root / self.headers / name
            earlier = there.read_bytes() if there.exists() else b""
            cuda = [(one.path, one.after) for one in written if one.report.language is Language.CUDA]
            self.compatibility = compatibility_header(uses(cuda, earlier))
        return self.compatibility
