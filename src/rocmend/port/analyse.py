"""Reading a project and saying what in it needs a port."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.port.cache import Cache
from rocmend.port.classify import languages
from rocmend.port.findings import findings
from rocmend.port.look import Look, Task, not_looked_at
from rocmend.port.pool import looks
from rocmend.port.records import Analysis, FileReport, Issue
from rocmend.port.rule import cuda, python, rules, text
from rocmend.port.settings import Settings, settings
from rocmend.port.steady import stamp_of, too_large
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

    Raises:
        UsageError: There is no such folder or file, its settings are wrong, or no rule begins with an id given.
        RocmendError: The processes that read files do not start.
    """
    start = time.perf_counter()
    root, walked, chosen = _project(root)
    wanted = _chosen_rules(select or chosen.select, [*chosen.ignore, *ignore])
    known = Cache(root, chosen) if cache else None
    seen: list[Look] = []
    to_read: list[FoundFile] = []
    for file in walked.files:
        if file.size > chosen.max_file_bytes:
            reason = too_large(file.size, chosen.max_file_bytes)
            seen.append(not_looked_at(file.path, reason, file.size))
            continue
        before = known.unchanged(file) if known else None
        if before is not None:
            seen.append(before)
        else:
            to_read.append(file)
    from_cache = len(seen) - sum(file.size > chosen.max_file_bytes for file in walked.files)
    total = len(walked.files)
    if progress:
        progress(len(seen), total)
    for fresh in _looks(root, to_read, known, jobs, chosen):
        done = known.take(fresh) if known else fresh
        from_cache += fresh.same
        seen.append(done)
        if progress:
            progress(len(seen), total)
    if known:
        known.save()
    seen += [not_looked_at(left.path, left.reason) for left in walked.left_out]
    files = _by_rules(seen, wanted)
    looked_at = Counter(one.reads.value for one in seen if one.reads)
    return Analysis(
        root=str(root),
        targets=tuple(targets),
        files=files,
        looked_at=dict(sorted(looked_at.items())),
        lines=sum(one.lines for one in seen),
        time_ms=(time.perf_counter() - start) * 1000,
        from_cache=from_cache,
        suppressed=sum(one.suppressed for one in seen),
        folders={left.path: left.reason for left in walked.folders},
        submodules=tuple(walked.submodules),
        notes=(*_problems(), *(known.notes if known else ())),
    )


def _project(root: Path) -> tuple[Path, Walked, Settings]:
    """Return the project's folder, its files and its settings; a single file is a project of one."""
    try:
        status = root.stat()
    except OSError as error:
        raise UsageError(
            str(root), f"cannot be looked at: {error.strerror}.", next_step="Name the project's folder, or one file."
        ) from error
    if root.is_dir():
        chosen = settings(root)
        return root, walk(root, exclude=chosen.exclude), chosen
    one = FoundFile(root.name, status.st_size, stamp_of(status))
    return root.parent, Walked([one], [], [], []), settings(root.parent)


def _chosen_rules(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Return the ids of the rules that are used."""
    known = [rule.id for rule in rules()]
    given = [[name.strip().upper() for name in names] for names in (select, ignore)]
    for name in (*given[0], *given[1]):
        if not any(rule.startswith(name) for rule in known):
            raise UsageError(
                "port", f"no rule is called {name!r} or begins with it.", next_step=f"Rules: {', '.join(known)}."
            )
    kept = [rule for rule in known if not given[0] or rule.startswith(tuple(given[0]))]
    return frozenset(rule for rule in kept if not rule.startswith(tuple(given[1])))


def _looks(
    root: Path, files: list[FoundFile], known: Cache | None, jobs: int | None, chosen: Settings
) -> Iterator[Look]:
    """Look at files, the largest first, in processes of their own: parsers have been seen to crash."""
    largest_first = sorted(files, key=lambda file: -file.size)
    tasks = [Task(*file, known.known_sha256(file.path) if known else "") for file in largest_first]
    if not tasks:
        return
    few = len(files) <= _FEW_FILES and sum(file.size for file in files) <= _FEW_BYTES
    wanted = jobs or (1 if few else len(os.sched_getaffinity(0)))
    yield from looks(root, tasks, min(wanted, len(tasks)), chosen)


def _by_rules(seen: Iterable[Look], wanted: frozenset[str]) -> tuple[FileReport, ...]:
    """Return the reports that have something to say, with the issues of the rules that are used."""

    def filtered(issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
        return tuple(issue for issue in issues if issue.rule in wanted)

    reports = (one.report for one in seen if one.report)
    kept = (msgspec.structs.replace(report, issues=filtered(report.issues)) for report in reports)
    return tuple(sorted((one for one in kept if one.issues or one.skipped), key=lambda one: one.path))


def _problems() -> Iterator[str]:
    """Yield the rules that did not load: what they would find is missing."""
    for registry in (python, cuda, text):
        for problem in registry.problems:
            yield f"The rule {problem.module} did not load: {problem.reason}."
