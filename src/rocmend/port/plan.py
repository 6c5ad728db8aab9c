"""Computing a port, in memory: what every file becomes, with the NVIDIA side of each proven before it is offered."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from rocmend.core.errors import UsageError
from rocmend.port.cuda.conditions import use_macros
from rocmend.port.languages import destination
from rocmend.port.memo import Memo
from rocmend.port.packages import Reach, Reaches
from rocmend.port.pool import Crew
from rocmend.port.records import Analysis, Change, FileReport, Issue, KeptFinding, Language
from rocmend.port.rewrite import CHANGED_SINCE, Rewrite, Rewritten, rewrite, taken
from rocmend.port.settings import settings
from rocmend.port.state import MAX_FILE_BYTES, digest, generations, opened
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.supply import header_folder, headers_in, modules_in, placed, way_to_header

__all__ = ["STYLES", "LeftAlone", "Plan", "Planner", "Written", "plan"]


_FEW_ISSUES = 24
_FEW_BYTES = 64 << 10
_DECODER = msgspec.msgpack.Decoder(Rewritten)
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
        files: In how many files these are.
        kept: What is left for a person in them and rules no longer see once they are written.
    """

    changes: list[Change]
    left_alone: list[LeftAlone]
    made: int
    files: int
    kept: tuple[KeptFinding, ...] = ()


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
        The changes that hold. A file is left alone, with the reason, whose NVIDIA side would change, that a second
        port would change again, whose edits contradict each other or that changed since the analysis.

    Raises:
        UsageError: There is no such style.
    """
    if style not in STYLES:
        raise UsageError("port", f"unknown style {style!r}.", next_step=f"Styles: {', '.join(STYLES)}.")
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
        self.tree = opened(self.root)
        self.suggestions = suggestions
        self.reaches = Reaches(self.root)
        self.settings = settings(self.root)
        self.memo = Memo(self.root)
        self.narrowed = analysis.narrowed
        self.macros = analysis.macros
        use_macros({name.encode(): values for name, values in self.macros.items()})
        self.todo = [
            (file, issues)
            for file in analysis.files
            if not file.skipped and (issues := taken(file.issues, suggestions=suggestions))
        ]
        cuda = [file.path for file, _ in self.todo if file.language is Language.CUDA]
        self.headers = header_folder(self.root, cuda) if cuda else ""
        self.left: list[LeftAlone] = []
        self.kept: dict[str, tuple[KeptFinding, ...]] = {}
        self.compatibility: bytes | None = None

    def plan(self) -> Plan:
        """Return what the port would change."""
        written = list(self.written())
        inside = [one for one in written if one.path == one.report.path]
        beside = [one for one in written if one.path != one.report.path]
        changes = [Change(one.path, one.before, one.after) for one in inside]
        changes += self.beside(beside)
        changes = self.supplied(inside, changes)
        kept = {change.path for change in changes}
        self.memo.save()
        return self.planned(changes, [one for one in written if one.path in kept])

    def planned(self, changes: list[Change], kept: list[Written]) -> Plan:
        """Return a plan of changes, in which these files are."""
        made = [sum(bool(issue.edits) for issue in one.issues) for one in kept]
        found = tuple(finding for one in kept for finding in self.kept.get(one.path, ()))
        ordered = sorted(changes, key=lambda change: change.path)
        return Plan(ordered, sorted(self.left), sum(made), sum(map(bool, made)), found)

    def written(self) -> Iterator[Written]:
        """Yield what files become, each proven; those that are left alone are noted."""
        prepared = {report.path: self.prepared(report, issues) for report, issues in self.todo}
        keys = {path: Memo.key(task, sorted(self.macros.items())) for path, (task, _) in prepared.items()}
        results: dict[str, Rewritten] = {}
        for path, key in keys.items():
            known = self.memo.get(key)
            if known is not None:
                results[path] = _DECODER.decode(known)
        for result in self.rewritten([task for path, (task, _) in prepared.items() if path not in results]):
            results[result.path] = result
            if not result.reason:  # what went wrong may be otherwise next time
                self.memo.put(keys[result.path], msgspec.msgpack.encode(result))
        for report, _ in self.todo:
            result = results[report.path]
            task, folder = prepared[report.path]
            if result.reason:
                self.leave(report.path, result.reason)
            elif result.after is not None:
                before = self.read(report)
                if before is not None:
                    place = destination(report.language, report.path)
                    if place == report.path:
                        self.kept[place] = result.kept
                    yield Written(report, place, before, result.after, list(task.issues), folder)

    def read(self, report: FileReport) -> bytes | None:
        """Return a file's bytes as they were analysed; None where they are no longer, which is noted."""
        try:
            data, _ = read_steady(self.root, report.path, self.settings.max_file_bytes)
        except NotReadError as error:
            self.leave(report.path, str(error))
            return None
        if digest(data) != report.sha256:
            self.leave(report.path, CHANGED_SINCE)
            return None
        return data

    def prepared(self, report: FileReport, issues: list[Issue]) -> tuple[Rewrite, str]:
        """Return what is to be done to a file, and the folder of its support modules."""
        reach = Reach("", "")
        if report.language is Language.PYTHON:
            data = self.bytes_of(report.path)
            reach = self.reaches.of(report.path, data, needs={need for issue in issues for need in issue.needs})
        elif report.language is Language.CUDA:
            issues = placed(issues, report.path, self.headers)
            reach = Reach(way_to_header(report.path, self.headers), "")
        todo = Rewrite(
            report.path,
            report.sha256,
            report.language,
            tuple(issues),
            reach.module,
            suggestions=self.suggestions,
            narrowed=self.narrowed,
            wide=report.wide,
        )
        return todo, reach.folder

    def bytes_of(self, path: str) -> bytes:
        """Return a file's bytes, nothing where it cannot be read: then it is not written either."""
        try:
            return read_steady(self.root, path, self.settings.max_file_bytes)[0]
        except NotReadError:
            return b""

    def rewritten(self, tasks: list[Rewrite]) -> Iterator[Rewritten]:
        """Yield what files become: here where little is to be done, else in processes, which can be ended."""
        short = sum(report.size_bytes for report, _ in self.todo) <= _FEW_BYTES
        if short and sum(len(task.issues) for task in tasks) <= _FEW_ISSUES:
            yield from (rewrite(self.root, task, self.settings.max_file_bytes) for task in tasks)
        else:
            with Crew(self.root, self.settings, self.macros) as crew:
                yield from crew.rewrites(tasks, min(len(tasks), len(os.sched_getaffinity(0))))

    def leave(self, path: str, reason: str) -> None:
        """Note that a file is not rewritten."""
        self.left.append(LeftAlone(path, reason))

    def beside(self, written: list[Written]) -> Iterator[Change]:
        """Yield the files beside originals; one that the project has already is its own, and stays."""
        if not written:
            return
        from rocmend.port.build.beside import settled
        from rocmend.port.build.write import redirected

        made = redirected({one.report.path: one.after for one in written})
        for one in written:
            if settled(self.root, one.report.path, one.report.issues).issuperset(i for i in one.issues if i.edits):
                continue  # with suggestions, perhaps, which stay
            yield from self.new(one.path, made[one.path], f"{one.report.path} has its own file for ROCm, {one.path}")

    def new(self, path: str, data: bytes, taken: str) -> Iterator[Change]:
        """Yield a file that is to be made; nothing where it is there with this content."""
        try:
            there = self.there(path)
        except NotReadError as error:
            self.leave(path, f"cannot be made: {error}")
            return
        if there is None:
            yield Change(path, None, data)
        elif there != data and self.suggestions and self.ours.get(path) == digest(there):
            yield Change(path, there, data)  # an earlier port made it, without suggestions
        elif there != data and path in self.ours:
            self.leave(path, "an earlier port made it with other rules; run `rocmend port undo` first")
        elif there != data:
            self.leave(path, f"{taken}, which is left unchanged")

    def there(self, path: str) -> bytes | None:
        """Return the bytes of a file where a port would put one; None where nothing is there.

        Raises:
            NotReadError: Something else than a file is there, a link for instance: it is the project's own, and stays.
            UnsafePathError: A folder above it is a link.
        """
        if self.tree.stat(path) is None:
            return None
        return read_steady(self.root, path, MAX_FILE_BYTES)[0]

    def supplied(self, written: list[Written], changes: list[Change]) -> list[Change]:
        """Return the changes with the support files that they use; those that cannot have theirs are left alone."""
        support: dict[str, bytes] = {}
        users: dict[str, list[str]] = {}
        for one in written:
            for path, data in self.support(one, written):
                support[path] = data
                users.setdefault(path, []).append(one.path)
        failed: set[str] = set()
        before: dict[str, bytes | None] = {}
        for path, data in sorted(support.items()):
            reason = ""
            try:
                before[path] = self.there(path)
            except NotReadError as error:
                reason = f" ({error})"
            if reason or (before[path] not in {None, data} and path not in self.ours):
                failed |= set(users[path])
                for user in users[path]:
                    self.leave(user, f"it needs {path}, and the project has a file of that name{reason}")
        kept = [change for change in changes if change.path not in failed]
        for path, data in sorted(support.items()):
            if not set(users[path]) <= failed and before[path] != data:
                kept.append(Change(path, before[path], data))
        return kept

    @cached_property
    def ours(self) -> dict[str, str]:
        """Return the files that ports made, with the digest of what the last one wrote."""
        made: dict[str, str] = {}
        for entry in (entry for one in generations(self.tree) for entry in one.manifest.entries):
            if not entry.before or entry.path in made:
                made[entry.path] = entry.after
        return made

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

            earlier = self.earlier_header(name)
            cuda = [(one.path, one.after) for one in written if one.report.language is Language.CUDA]
            key = Memo.key(earlier, sorted(self.macros.items()), [(path, digest(after)) for path, after in cuda])
            self.compatibility = self.memo.get(key) or compatibility_header(uses(cuda, earlier))
            self.memo.put(key, self.compatibility)
        return self.compatibility

    def earlier_header(self, name: str) -> bytes:
        """Return a support header as an earlier port left it; nothing where none did."""
        try:
            return self.there(f"{self.headers}/{name}".lstrip("/")) or b""
        except NotReadError:  # the sources that need it are then left alone
            return b""
