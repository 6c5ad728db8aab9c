"""What git knows of a project. Without git, or outside of a work tree, it knows nothing."""

from __future__ import annotations

from pathlib import Path

from rocmend.core.supervise import CommandResult, run_command

__all__ = ["ignored_paths", "submodules", "uncommitted"]

_TIME_LIMIT_S = 60.0


def _git(root: Path, *arguments: str) -> CommandResult:
    """Run git in a folder; a project's configuration may name programs, so the ones that listing could run are off."""
    return run_command(
        ("git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-C", str(root), *arguments),
        time_limit_s=_TIME_LIMIT_S,
        max_output_bytes=256 << 20,
    )


def ignored_paths(root: Path) -> frozenset[str]:
    """Return what git ignores below a folder, relative to it; an ignored folder stands for all that it holds."""
    done = _git(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    return frozenset(path.rstrip("/") for path in done.stdout.split("\0") if path) if done.ok else frozenset()


def uncommitted(root: Path) -> list[tuple[str, bool]]:
    """Return what a folder holds that is not committed, relative to it, and whether git tracks it.

    Empty where there is no git, or the folder is in no work tree.
    """
    prefix = _git(root, "rev-parse", "--show-prefix")
    done = _git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", ".")
    if not (prefix.ok and done.ok):
        return []
    below = prefix.stdout.rstrip("\n")
    parts = iter(done.stdout.split("\0"))
    found = []
    for part in parts:
        if len(part) > 3:
            found.append((part[3:].removeprefix(below), part[:2] != "??"))
            if part[0] in "RC":
                next(parts, None)  # where it came from
    return sorted(found)


def submodules(root: Path) -> list[str]:
    """Return the paths of the submodules that a project declares, whether or not they are checked out."""
    done = _git(root, "config", "--file", str(root / ".gitmodules"), "--get-regexp", r"^submodule\..*\.path$")
    return sorted(line.partition(" ")[2] for line in done.stdout.splitlines() if " " in line) if done.ok else []
