"""A port as commands do it: read the project, say what it is, write or plan the changes."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.gfx import lookup
from rocmend.core.units import count_text
from rocmend.port.analyse import analyse
from rocmend.port.apply import Applied, apply
from rocmend.port.build.beside import settled
from rocmend.port.languages import destination
from rocmend.port.phases import estimate, phase_of
from rocmend.port.plan import LeftAlone, plan
from rocmend.port.project import Project, understand
from rocmend.port.records import Analysis, FileReport, Issue, Language, Outcome
from rocmend.port.state import generations

__all__ = [
    "Ported",
    "analysed",
    "linted",
    "listed",
    "needs_more",
    "pending",
    "ported",
    "project_folder",
    "require_port",
    "require_sources",
    "shown_issues",
    "style_of",
    "unread",
]


class Ported(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a port found, and what it did.

    Attributes:
        project: What the project is, and the plan.
        analysis: What needs a port.
        changed: Files that are changed, or would be.
        added: Files that are made, or would be.
        left_alone: Files with something to rewrite that is not rewritten, and why.
        made: How many issues the changes rewrite.
        written: Whether the changes were written.
        notes: What else there is to say.
        suggestions: Whether suggested rewrites are among the changes.
    """

    project: Project
    analysis: Analysis
    changed: tuple[str, ...]
    added: tuple[str, ...]
    left_alone: tuple[LeftAlone, ...]
    made: int
    written: bool
    notes: tuple[str, ...] = ()
    suggestions: bool = False

    @property
    def open(self) -> bool:
        """Whether there is something left for the tool or for a person to do."""
        to_write = not self.written and bool(self.changed or self.added)
        return to_write or needs_more(self.analysis, self.left_alone, suggestions=self.suggestions)


def unread(analysis: Analysis) -> list[FileReport]:
    """Return the files that were not read although they matter: whether they need a port is not known."""
    return [file for file in analysis.files if file.unread]


def needs_more(analysis: Analysis, left_alone: Sequence[LeftAlone], *, suggestions: bool = False) -> bool:
    """Tell whether something is left for a person to do where all that can be rewritten is.

    Args:
        analysis: What was found.
        left_alone: What is not rewritten although it could be.
        suggestions: Whether suggested rewrites are among what can be.
    """
    left = {Outcome.MANUAL, Outcome.SUGGEST}
    return bool(left_alone or unread(analysis)) or any(
        issue.outcome in left for issue in pending(analysis, suggestions=suggestions)
    )


def pending(analysis: Analysis, *, suggestions: bool) -> list[Issue]:
    """Return the issues of an analysis, without those that a file beside theirs settles (``Dockerfile.rocm``).

    Args:
        analysis: What was found.
        suggestions: Whether suggested rewrites are made, and not to be named any more.
    """
    root = Path(analysis.root)
    found: list[Issue] = []
    for file in analysis.files:
        done = settled(root, file.path, file.issues) if file.language is Language.TEXT else ()
        found += [
            issue
            for issue in file.issues
            if issue not in done and not (suggestions and issue.edits and issue.outcome is Outcome.SUGGEST)
        ]
    return found


def shown_issues(done: Ported) -> list[Issue]:
    """Return the issues that a port is about, with a rewrite that is made as one.

    Without those that a file beside theirs has settled before, and rewrites of files that are left alone.
    """
    root = Path(done.analysis.root)
    now = {*done.changed, *done.added}
    alone = {one.path for one in done.left_alone}
    found: list[Issue] = []
    for file in done.analysis.files:
        beside = destination(file.language, file.path)
        before = file.language is Language.TEXT and beside not in now
        settled_before = settled(root, file.path, file.issues) if before else ()
        for issue in file.issues:
            taken = done.suggestions and issue.edits and issue.outcome is Outcome.SUGGEST
            shown = msgspec.structs.replace(issue, outcome=Outcome.AUTO) if taken else issue
            left = shown.outcome is Outcome.AUTO and (file.path in alone or beside in alone)
            if issue not in settled_before and not left:
                found.append(shown)
    return found


def _counted(done: Ported) -> Ported:
    """Return a port whose plan counts what it is about."""
    issues = shown_issues(done)
    phases = tuple(
        msgspec.structs.replace(
            phase, estimate=estimate(issue for issue in issues if phase_of(issue.rule) == phase.number)
        )
        for phase in done.project.phases
    )
    project = msgspec.structs.replace(done.project, phases=phases, estimate=estimate(issues))
    return msgspec.structs.replace(done, project=project)


def project_folder(command: str, path: Path) -> None:
    """Check that a command was given a project's folder.

    Raises:
        UsageError: There is no such folder.
    """
    try:
        found = stat.S_ISDIR(path.stat().st_mode)
        why = "is not a folder"
    except OSError as error:
        found, why = False, f"cannot be opened: {error.strerror}"
    if not found:
        raise UsageError(command, f"{path} {why}.", next_step="Name the project's folder.")


def require_sources(command: str, path: Path, analysis: Analysis) -> None:
    """Check that a project has files that a port reads.

    Raises:
        UsageError: It has none: nothing was looked at, so nothing can be said of it.
    """
    if analysis.looked_at or analysis.files:
        return
    others = f" Submodules are ported on their own: {', '.join(analysis.submodules)}." if analysis.submodules else ""
    raise UsageError(
        command,
        f"no CUDA was found in {path}: it has no CUDA, C++, Python or build files.",
        next_step=f"Name the folder that holds the project's sources.{others}",
    )


def require_port(path: Path, targets: Sequence[str]) -> None:
    """Check that a project was ported, or has nothing that a port would rewrite.

    Raises:
        UsageError: It was not ported, and a port would change it; or it has no sources.
    """
    if generations(path):
        return
    analysis = analysed(path, targets=targets)
    require_sources("port verify", path, analysis)
    planned = plan(analysis)
    if planned.changes:
        files = count_text(planned.files, "file")
        raise UsageError(
            "port verify",
            f"{path} was not ported yet: {count_text(planned.made, 'place')} in {files} to be rewritten.",
            why="Verification compares a port with the original.",
            next_step=f"Apply the port, then verify again:\n  {shlex.join(['rocmend', 'port', str(path), '--apply'])}",
        )


def style_of(path: Path, asked: str | None) -> str:
    """Return how CUDA sources are written: as it was asked for, else as the project's last port was, else in place."""
    ports = generations(path)
    return asked or (ports[-1].manifest.style if ports else "") or "inplace"


def analysed(
    path: Path,
    *,
    targets: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    jobs: int | None = None,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Analysis:
    """Return what in a project needs a port.

    Raises:
        UsageError: There is no such project, rule or gfx target.
    """
    names = tuple(dict.fromkeys(lookup(name).name for name in targets))
    return analyse(path, targets=names, select=select, ignore=ignore, jobs=jobs, cache=cache, progress=progress)


def listed(names: Sequence[str]) -> list[str]:
    """Return ids that were named one by one or with commas between them; an empty name, as of a variable, is none."""
    return [one.strip() for name in names for one in name.split(",") if one.strip()]


def linted(
    files: Sequence[Path], *, select: Sequence[str], ignore: Sequence[str], baseline: Path | None = None
) -> Analysis:
    """Return what in single files of the project in the working folder needs a port, without notes.

    Args:
        files: The files.
        select: Ids of rules, or their beginnings, that are used.
        ignore: Ids of rules, or their beginnings, that are not.
        baseline: A file of findings that are known.

    Raises:
        UsageError: A path is not a file that can be read, or is outside of the working folder or in a repository in it.
    """
    from rocmend.port.baseline import read_baseline, without_known

    root = Path.cwd()
    paths = [Path(os.path.normpath(root / file)) for file in files]
    outside = next((file for file, path in zip(files, paths, strict=True) if not path.is_relative_to(root)), None)
    if outside is not None:
        raise UsageError(
            "port lint", f"{outside} is outside the working folder.", next_step="Run it in the project's folder."
        )
    for file, path in zip(files, paths, strict=True):
        _require_file(file, path, root)
    only = frozenset(path.relative_to(root).as_posix() for path in paths)
    found = analyse(Path(), select=select, ignore=ignore, only=only)
    if baseline is not None:
        found = without_known(found, read_baseline(baseline))
    open_ = set(map(id, (one for one in pending(found, suggestions=False) if one.outcome is not Outcome.NOTE)))
    kept = (
        msgspec.structs.replace(file, issues=tuple(one for one in file.issues if id(one) in open_))
        for file in found.files
    )
    return msgspec.structs.replace(found, files=tuple(file for file in kept if file.issues or file.unread))


def _require_file(file: Path, path: Path, root: Path) -> None:
    """Check that a path names a file of the project in a folder: of any other, no findings would say nothing.

    Raises:
        UsageError: It does not.
    """
    why, next_step = "", "Name files that exist (`git diff --name-only --diff-filter=d` leaves out deleted ones)."
    if path.is_dir():
        why, next_step = (
            "is a folder",
            f"Name its files, or check all of it:\n  {shlex.join(['rocmend', 'port', str(file)])}",
        )
    elif not os.path.lexists(path):
        why = "does not exist"
    elif not path.is_symlink() and not (path.is_file() and os.access(path, os.R_OK)):
        why = "is not a file that can be read"
    elif inner := next(
        (one for one in path.parents if one.is_relative_to(root) and one != root and (one / ".git").exists()), None
    ):
        why, next_step = f"is in a git repository of its own, {inner.relative_to(root)}", "Run it in that folder."
    if why:
        raise UsageError("port lint", f"{file} {why}.", next_step=next_step)


def ported(
    path: Path,
    analysis: Analysis,
    *,
    write: bool,
    style: str = "inplace",
    suggestions: bool = False,
    allow_dirty: bool = False,
    compile_first: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Ported:
    """Write a port, or say what it would be.

    Args:
        path: The project.
        analysis: Of it, as it is now.
        write: Whether it is written.
        style: How CUDA sources are written.
        suggestions: Whether suggested rewrites are made too.
        allow_dirty: Whether files may be changed that git does not have as they are.
        compile_first: Whether a port is refused that compiles less than the project did.
        progress: Told how far compiling is.
    """
    project = understand(path, analysis)
    if write:
        done: Applied = apply(
            analysis,
            style=style,
            suggestions=suggestions,
            allow_dirty=allow_dirty,
            compile_first=compile_first,
            progress=progress,
        )
        return _counted(
            Ported(
                project,
                analysis,
                done.changed,
                done.added,
                done.left_alone,
                done.made,
                written=True,
                notes=done.notes,
                suggestions=suggestions,
            )
        )
    planned = plan(analysis, style=style, suggestions=suggestions)
    changed = tuple(change.path for change in planned.changes if change.before is not None)
    added = tuple(change.path for change in planned.changes if change.before is None)
    return _counted(
        Ported(
            project,
            analysis,
            changed,
            added,
            tuple(planned.left_alone),
            planned.made,
            written=False,
            suggestions=suggestions,
        )
    )
