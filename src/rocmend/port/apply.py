"""Writing a port into a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.errors import UnitError, UsageError
from rocmend.core.units import count_text
from rocmend.port.git import uncommitted
from rocmend.port.patch import patch
from rocmend.port.plan import LeftAlone, Plan, plan
from rocmend.port.records import Analysis, Change
from rocmend.port.state import Manifest, digest_at, entries_of, fault_of, generations
from rocmend.port.transaction import commit, locked, modes_of, not_written, recover, to_make

__all__ = ["Applied", "apply", "changes", "diff"]


class Applied(msgspec.Struct, frozen=True):
    """What a port wrote.

    Attributes:
        changed: Files that were changed, by path.
        added: Files that were made, by path.
        left_alone: Files with something to rewrite that were not rewritten, and why.
        made: How many issues were rewritten.
        notes: What else there is to say, in sentences.
    """

    changed: tuple[str, ...]
    added: tuple[str, ...]
    left_alone: tuple[LeftAlone, ...]
    made: int
    notes: tuple[str, ...] = ()


def changes(analysis: Analysis, *, style: str = "inplace", suggestions: bool = False) -> list[Change]:
    """Return what a port would change, each file's NVIDIA side proven unchanged; nothing is written.

    Args:
        analysis: Of the project as it is now.
        style: ``inplace``: gates in the files. ``tree``: C++ and CUDA sources as HIP in a folder ``rocm`` of their own.
        suggestions: Whether suggested rewrites are made too.

    Raises:
        UsageError: There is no such style.
    """
    return plan(analysis, style=style, suggestions=suggestions).changes


def diff(changed: Iterable[Change]) -> str:
    """Return changes as a patch that ``git apply`` takes.

    Bytes that are not UTF-8 are surrogates in the text: encode it with ``errors="surrogateescape"``.
    """
    return patch(changed).decode("utf-8", "surrogateescape")


def apply(  # noqa: PLR0913  a run is told what to write, and how
    analysis: Analysis,
    *,
    style: str = "inplace",
    suggestions: bool = False,
    allow_dirty: bool = False,
    compile_first: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> Applied:
    """Write a port into its project: all of it or nothing, with the way back in ``.rocmend/port``.

    Args:
        analysis: Of the project as it is now.
        style: As in ``changes``.
        suggestions: As in ``changes``.
        allow_dirty: Whether files may be changed that git does not have as they are.
        compile_first: Whether what the project has for ROCm itself is compiled, as it is and as it would be.
        progress: Told how far that is.

    Raises:
        UsageError: Something compiles for ROCm now, and would not after the port; the work tree has changes that are
            not committed; a file changed meanwhile, or another process is changing the project. Nothing was written.
        DataError: What an earlier port left leads out of the project, or a folder to write to is a link.
        RocmendError: The disk is full, or a folder is not writable.
    """
    root = Path(analysis.root)
    with locked(root) as tree:
        try:
            told = recover(tree)
            planned = plan(analysis, style=style, suggestions=suggestions)
            if planned.changes:
                if not allow_dirty:
                    _refuse_dirty(tree, planned.changes)
                if compile_first:
                    told = _refuse_less(root, planned.changes, analysis.targets, progress) or told
                _commit(tree, planned, analysis.targets, style)
        except OSError as error:
            raise not_written(tree, error) from error
    return Applied(
        changed=tuple(change.path for change in planned.changes if change.before is not None),
        added=tuple(change.path for change in planned.changes if change.before is None),
        left_alone=tuple(planned.left_alone),
        made=planned.made,
        notes=(told,) if told else (),
    )


def _commit(tree: Beneath, planned: Plan, targets: Sequence[str], style: str) -> None:
    modes = modes_of(tree, planned.changes)
    manifest = Manifest(
        entries_of(planned.changes, modes),
        made_folders=tuple(to_make(tree, planned.changes)),
        style=style,
        targets=tuple(targets),
        findings=planned.kept,
    )
    if fault := fault_of(manifest):  # it could not be read back, and nothing could be undone
        raise UnitError("port", f"nothing was written: the record of this port would be wrong ({fault}).")
    back = [Change(change.path, change.after, change.before) for change in planned.changes]
    commit(tree, planned.changes, manifest, patch(back))


_SHOWN = 5


def _refuse_less(
    root: Path, planned: Sequence[Change], targets: Sequence[str], progress: Callable[[str, int, int], None] | None
) -> str:
    """Raise where a port compiles less than the project did; return what there is to say otherwise."""
    from rocmend.port.verify.before import compared

    found = compared(root, planned, targets, progress=progress)
    if not found.lost and found.why_not:
        count = count_text(found.units, "translation unit")
        untested = f"Whether that still compiles was not tested for {found.untold} of them: {found.why_not}"
        return f"The project has code for ROCm of its own in {count}. {untested}"
    if not found.lost and found.error:
        what = "None of them compiles" if not found.before else f"{found.units - found.before} of them do not compile"
        count = count_text(found.units, "translation unit")
        untested = f"{what} as it is, so the port could not be compared there. {found.error}"
        return f"The project has code for ROCm of its own in {count}. {untested}"
    if not found.lost:
        return ""
    paths = list(dict.fromkeys(one.path for one in found.lost))
    first = found.lost[0]
    shown = ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
    where = f"{first.path} ({first.target})"
    raise UsageError(
        str(root),
        f"the port would break what compiles for ROCm now: {shown}. Nothing was written.",
        why=f"The project supports ROCm itself. With the port, {where} gives: {first.error}",
        next_step=(
            "Leave these files out (exclude in [tool.rocmend.port]) or the rule that breaks them (--ignore ID); "
            "`--no-compile` writes the port all the same, to be repaired by hand."
        ),
    )


def _refuse_dirty(tree: Beneath, planned: Sequence[Change]) -> None:
    """Raise where git could not take the port back: tracked files are changed, or files are that git does not have.

    Files that are as an earlier port left them do not count: what they were is kept beside the project.
    """
    dirty = uncommitted(tree.root)
    ours = {change.path for change in planned if change.before is not None}
    left = {entry.path: entry.after for port in generations(tree) for entry in port.manifest.entries}
    found = sorted(
        path
        for path, tracked in dirty
        if (tracked or path in ours) and not (path in left and digest_at(tree, path) == left[path])
    )
    if not found:
        return
    shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    raise UsageError(
        str(tree.root),
        f"the work tree has uncommitted changes: {shown}.",
        why="Only with everything else committed can git show and revert the port separately.",
        next_step="Commit or stash them, or allow it with --allow-dirty.",
    )
