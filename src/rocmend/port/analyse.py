"""Reading a project and saying what in it needs a port."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown
from rocmend.core.units import count_text
from rocmend.port.cache import Cache
from rocmend.port.classify import kind, languages
from rocmend.port.cuda.conditions import use_macros
from rocmend.port.findings import findings
from rocmend.port.look import Look, Task, not_looked_at
from rocmend.port.macros import own_macros
from rocmend.port.pool import Crew, Macros
from rocmend.port.records import NO_TIME_LEFT, Analysis, FileReport, Issue
from rocmend.port.rule import cuda, python, rules, text
from rocmend.port.settings import Settings, settings
from rocmend.port.steady import stamp_of
from rocmend.port.torch_build import TorchBuild, torch_builds, without_names
from rocmend.port.transaction import interrupted
from rocmend.port.walk import FoundFile, Walked, walk

__all__ = ["Progress", "analyse", "read"]

Progress = Callable[[int, int], None]
"""Told how many files are done, of how many."""

_FEW_FILES = 12
_FEW_BYTES = 512 << 10


def read(path: str, data: bytes) -> FileReport:
    """Return what the rules find in one file.

    Args:
        path: Relative to the project, with forward slashes; its name says how it is read.
        data: Its bytes.

    Returns:
        The issues by place; ``skipped`` says why a file was not understood (then there are none). A file that no rule
        reads is an empty report.
    """
    return findings(path, data, languages(path, data))[0]


def analyse(  # noqa: PLR0913  a run is told what to read, by which rules and how
    root: Path,
    *,
    targets: Sequence[str] = (),
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    jobs: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
    only: frozenset[str] | None = None,
) -> Analysis:
    """Return what in a project needs a port. Nothing is written but the cache, in the user's cache folder.

    Args:
        root: The project's folder, or one file.
        targets: The gfx targets that the port is for.
        select: Ids of rules, or their beginnings, that are used; none: the project's setting, else all.
        ignore: Ids of rules, or their beginnings, that are not, beside those that the project's settings name.
        jobs: How many processes read files; None: one a CPU that we may run on, and one for a small project.
        cache: Whether what is known of unchanged files is used and kept.
        progress: Is told how far it is.
        only: Paths of the files to read, relative to the project; None: all. Those that the project excludes, or that
            no rule reads, are left out.

    Raises:
        UsageError: There is no such folder or file, its settings are wrong, or no rule begins with an id given.
        RocmendError: The processes that read files do not start.
    """
    start = time.perf_counter()
    use_macros({})
    folder, single = _folder(root)
    chosen = settings(folder)
    known = Cache(folder, chosen) if cache and only is None else None  # a cache holds a whole project
    with Crew(folder, chosen) as crew:
        if known is None or known.empty:
            crew.start()  # it loads the rules while we do
        wanted = _chosen_rules(select or chosen.select, [*chosen.ignore, *ignore])
        walked = single or walk(folder, exclude=chosen.exclude)
        names = _names(folder, walked, alone=single is not None)
        passed_over: tuple[str, ...] = ()
        if only is not None:
            walked, passed_over = _only(walked, only)
        seen, to_read = _known(walked.files, known)
        from_cache, total = len(seen), len(walked.files)
        if progress:
            progress(len(seen), total)
        for fresh in crew.looks(_tasks(to_read, known), _jobs(jobs, to_read)):
            seen.append(known.take(fresh) if known else fresh)
            from_cache += fresh.same
            if progress:
                progress(len(seen), total)
    if known:
        known.save()
    own, unused = own_macros(folder, seen, chosen.max_file_bytes)
    if own:
        use_macros({name.encode(): values for name, values in own.items()})
        seen = _again(folder, chosen, seen, own, jobs)
    seen += [not_looked_at(left.path, left.reason) for left in walked.left_out]
    if any(one.lanes is not None and one.lanes.wide for one in seen):
        from rocmend.port.widths import by_width

        seen = by_width(folder, seen, chosen.max_file_bytes)
    if any(one.asks for one in seen):
        from rocmend.port.headers import by_headers

        seen = by_headers(folder, seen, chosen.max_file_bytes)
    built = torch_builds(folder, seen, chosen.max_file_bytes) if root.is_dir() else TorchBuild()
    files = _by_rules(seen, wanted, names, built)
    files, closed, gone = _kept(folder, files, wanted, walked, chosen.max_file_bytes)
    looked_at = Counter(one.reads.value for one in seen if one.reads and not (one.report and one.report.skipped))
    return Analysis(
        root=str(folder),
        targets=tuple(targets),
        files=files,
        looked_at=dict(sorted(looked_at.items())),
        lines=sum(one.lines for one in seen),
        time_ms=(time.perf_counter() - start) * 1000,
        from_cache=from_cache,
        suppressed=closed + sum(one.suppressed for one in seen),
        folders={left.path: left.reason for left in walked.folders},
        submodules=tuple(walked.submodules),
        notes=(
            *passed_over,
            *_problems(folder),
            *_left_out(files, chosen.project_time_limit_s),
            *_unused(unused),
            *gone,
            *(known.notes if known else ()),
        ),
        narrowed=len(wanted) < len(rules()),
        macros=own,
    )


def _again(folder: Path, chosen: Settings, seen: Sequence[Look], own: Macros, jobs: int | None) -> list[Look]:
    """Return looks in which files that name the project's own macros were read with what these are."""
    from rocmend.port.macros import naming

    files = [FoundFile(one.path, one.size_bytes, one.stamp) for one in naming(folder, seen, own, chosen.max_file_bytes)]
    with Crew(folder, chosen, own) as crew:
        fresh = {one.path: one for one in crew.looks(_tasks(files, None), _jobs(jobs, files))} if files else {}
    return [fresh.get(one.path, one) for one in seen]


def _folder(root: Path) -> tuple[Path, Walked | None]:
    """Return the project's folder, and its one file where a file was named."""
    try:
        status = root.stat()
    except OSError as error:
        raise UsageError(
            str(root), f"cannot be read: {error.strerror}.", next_step="Name the project's folder, or one file."
        ) from error
    if root.is_dir():
        return root, None
    known = kind(root.name)
    if known is not None and not known:  # that nothing was found in it would say nothing
        raise UsageError(
            str(root),
            "is not a file that a port reads: its name is not that of a CUDA, C++, Python or build file.",
            next_step="Name the project's folder, or a source file of it.",
        )
    return root.parent, Walked([FoundFile(root.name, status.st_size, stamp_of(status))], [], [], [])


def _chosen_rules(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Return the ids of the rules that are used."""
    known = [rule.id for rule in rules()]
    given = [[name.strip().upper() for name in names] for names in (select, ignore)]
    for name in (*given[0], *given[1]):
        if not any(rule.startswith(name) for rule in known):
            raise unknown("port", "rule", name, known, listed="rocmend port --rules")
    kept = [rule for rule in known if not given[0] or rule.startswith(tuple(given[0]))]
    return frozenset(rule for rule in kept if not rule.startswith(tuple(given[1])))


def _only(walked: Walked, paths: frozenset[str]) -> tuple[Walked, tuple[str, ...]]:
    """Return what a walk found of these paths, and a sentence on each that it did not."""
    left_out = [one for one in walked.left_out if one.path in paths]
    files = [one for one in walked.files if one.path in paths]
    missing = sorted(paths - {one.path for one in files} - {one.path for one in left_out})
    folders = {one.path: one.reason for one in walked.folders}
    return Walked(files, left_out, [], []), tuple(f"{path} was not read: {_why(path, folders)}." for path in missing)


def _why(path: str, folders: Mapping[str, str]) -> str:
    """Return why a walk did not come by a file."""
    where = next((str(one) for one in PurePosixPath(path).parents if str(one) in folders), "")
    if where:
        return f"{where} is not entered, {folders[where]}"
    known = kind(path)
    if known is not None and not known:
        return "its name is not that of a CUDA, C++, Python or build file"
    return "the project excludes it, or git ignores it"


def _known(files: Iterable[FoundFile], known: Cache | None) -> tuple[list[Look], list[FoundFile]]:
    """Return what is known of files from before, and the files that have to be read."""
    seen: list[Look] = []
    to_read: list[FoundFile] = []
    for file in files:
        before = known.unchanged(file) if known else None
        if before is None:
            to_read.append(file)
        else:
            seen.append(before)
    return seen, to_read


def _tasks(files: Iterable[FoundFile], known: Cache | None) -> Iterator[Task]:
    """Yield what is to be done, the largest file first: the last ones are then short."""
    for file in sorted(files, key=lambda one: -one.size):
        yield Task(*file, known.known_sha256(file.path) if known else "")


def _jobs(asked: int | None, files: Sequence[FoundFile]) -> int:
    """Return how many processes read; a small project is done before a second one has started."""
    few = len(files) <= _FEW_FILES and sum(file.size for file in files) <= _FEW_BYTES
    return max(1, min(asked or (1 if few else len(os.sched_getaffinity(0))), len(files)))


def _names(folder: Path, walked: Walked, *, alone: bool) -> set[str]:
    """Return the names of a project's files and, as `NAME/__init__.py`, of the packages that it brings itself.

    Of one file, those beside it are its project's.
    """
    if alone:
        return {one.name for one in folder.iterdir()}
    paths = {PurePosixPath(file.path) for file in walked.files}
    packages = {path.parent for path in paths if path.name == "__init__.py"}
    own = {f"{folder.name}/__init__.py" for folder in packages if folder.parent not in packages}
    return {path.name for path in paths} | own


def _by_rules(
    seen: Iterable[Look], wanted: frozenset[str], names: set[str], built: TorchBuild
) -> tuple[FileReport, ...]:
    """Return the reports that have something to say, with the issues of the rules that are used.

    Args:
        seen: What was found.
        wanted: The rules.
        names: Of the project's files: some issues are none where it has a certain one.
        built: How its CUDA is built: some are none where PyTorch's build does it.
    """

    def filtered(path: str, issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
        left = tuple(issue for issue in issues if issue.rule in wanted and names.isdisjoint(issue.unless))
        known = built.of(path)
        return without_names(left, known) if known else left

    reports = (one.report for one in seen if one.report)
    kept = (msgspec.structs.replace(report, issues=filtered(report.path, report.issues)) for report in reports)
    return tuple(sorted((one for one in kept if one.issues or one.skipped), key=lambda one: one.path))


def _kept(
    folder: Path, files: tuple[FileReport, ...], wanted: frozenset[str], walked: Walked, max_file_bytes: int
) -> tuple[tuple[FileReport, ...], int, tuple[str, ...]]:
    """Return reports with what earlier ports keep, how many findings comments close, and notes on lost files."""
    from rocmend.port.kept import with_kept

    return with_kept(folder, files, wanted, {file.path for file in walked.files}, max_file_bytes)


def _left_out(files: Iterable[FileReport], limit_s: float) -> Iterator[str]:
    """Yield what there is to say of files that there was no time for."""
    count = sum(file.skipped == NO_TIME_LEFT for file in files)
    if count:
        yield (
            f"{count_text(count, 'file')} not read: the project's time limit of {limit_s:g} s was reached "
            "(project-time-limit-s). The next run continues from there."
        )


def _unused(macros: Sequence[str]) -> Iterator[str]:
    """Yield what there is to say of macros that tell ROCm from CUDA and are too many to be used."""
    if macros:
        yield (
            f"{count_text(len(macros), 'macro')} of the project for ROCm not used ({macros[0]}, …): it defines too "
            "many, and conditions on these are read as if nothing were known of them."
        )


def _problems(root: Path) -> Iterator[str]:
    """Yield what makes an analysis less than it seems: rules that did not load, a port that is half done."""
    for registry in (python, cuda, text):
        for problem in registry.problems:
            yield f"The rule {problem.module} did not load: {problem.reason}."
    if interrupted(root):
        yield "A port or its undo was interrupted here: the next `rocmend port --apply` or `undo` finishes it first."
