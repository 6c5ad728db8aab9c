"""What git knows of a project. Without git, or outside of a work tree, it knows nothing.

A project brings its own configuration along (``.git/config``, and what it includes), which may name programs: filters,
hooks, watchers, helpers of remotes. None of them is run.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError, UsageError
from rocmend.core.supervise import CommandResult, run_command

__all__ = ["PATCHING", "applies", "apply_patch", "ignored_paths", "submodules", "tracked", "uncommitted"]

_TIME_LIMIT_S = 60.0
_MAX_MODULES_BYTES = 1 << 20
_MOST_OVERRIDES = 1000

_ALWAYS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "core.sshCommand": "false",
    "core.pager": "cat",
    "safe.directory": "*",  # another user's repository too: no program of its runs, and what it tracks has to be known
    "safe.bareRepository": "explicit",  # a folder of a project that looks like a repository is none
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",  # no transport at all: an object that is missing is not fetched
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_PAGER": "cat",
}
_LOCAL = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")
"""Variables of a run of git that we may be called from; they are about another repository."""


def _environment(settings: dict[str, str]) -> dict[str, str]:
    """Return an environment in which settings stand above all files of configuration.

    Unlike `git -c`, it takes any name: that of a filter may hold an equals sign.
    """
    env = {name: value for name, value in os.environ.items() if name not in _LOCAL} | _ENVIRONMENT
    count = int(env.get("GIT_CONFIG_COUNT", "") or 0) if env.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    for at, (key, value) in enumerate(settings.items(), count):
        env[f"GIT_CONFIG_KEY_{at}"], env[f"GIT_CONFIG_VALUE_{at}"] = key, value
    return env | {"GIT_CONFIG_COUNT": str(count + len(settings))}


def _run(root: Path, settings: dict[str, str], *arguments: str) -> CommandResult:
    return run_command(
        ("git", "--no-pager", "-C", str(root), *arguments),
        time_limit_s=_TIME_LIMIT_S,
        env=_environment(settings),
        max_output_bytes=256 << 20,
    )


def _git(root: Path, *arguments: str) -> CommandResult | None:
    """Run git in a folder without the programs that its configuration names; None where they cannot be turned off."""
    settings = _overrides(root)
    return None if settings is None else _run(root, settings, *arguments)


def _overrides(root: Path) -> dict[str, str] | None:
    """Return the settings that turn off every program that a repository's own configuration names.

    None where that is not certain: git is too old to be told, or there are too many.
    """
    done = _run(root, _ALWAYS, "config", "--list", "--includes", "--show-scope", "--name-only", "-z")
    parts = done.stdout.split("\0")
    keys = list(zip(parts[::2], parts[1::2], strict=False))
    if not done.ok or ("command", "core.hookspath") not in keys or "\ufffd" in done.stdout:
        return None
    own = {key for scope, key in keys if scope in {"local", "worktree", "submodule"}}
    filters = {key.partition(".")[2].rpartition(".")[0] for key in own if key.startswith("filter.")}
    if any(key.startswith("lfs.extension.") for key in own):
        filters.add("lfs")
    found = dict(_ALWAYS)
    for name in sorted(filters):
        found |= {f"filter.{name}.clean": "", f"filter.{name}.smudge": "", f"filter.{name}.process": ""}
        found[f"filter.{name}.required"] = "false"
    found |= {key: "false" for key in own if key.startswith("remote.") and key.endswith(".promisor")}
    return found if len(found) <= _MOST_OVERRIDES else None


def ignored_paths(root: Path) -> frozenset[str]:
    """Return what git ignores below a folder, relative to it; an ignored folder stands for all that it holds."""
    done = _git(root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    return frozenset(path.rstrip("/") for path in done.stdout.split("\0") if path) if done and done.ok else frozenset()


def tracked(root: Path, path: str) -> list[str]:
    """Return what git tracks at and below a path of a folder, relative to the folder.

    Raises:
        UsageError: There is a repository, and git cannot be asked.
    """
    _refuse_unanswered(root)
    done = _git(root, "ls-files", "-z", "--cached", "--", path)
    return [one for one in done.stdout.split("\0") if one] if done and done.ok else []


def uncommitted(root: Path) -> list[tuple[str, bool]]:
    """Return what a folder holds that is not committed, relative to it, and whether git tracks it.

    Empty where there is no git, or the folder is in no work tree.

    Raises:
        UsageError: There is a repository, and git cannot be asked without running programs that it names.
    """
    _refuse_unanswered(root)
    prefix = _git(root, "rev-parse", "--show-prefix")
    done = _git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", ".")
    if not (prefix and prefix.ok and done and done.ok):
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


def _refuse_unanswered(root: Path) -> None:
    """Raise where there is a repository that git cannot be asked about: that is no clean work tree."""
    here = Path(os.path.realpath(root))
    repository = any(os.path.lexists(folder / ".git") for folder in (here, *here.parents))
    if repository and shutil.which("git") and _overrides(root) is None:
        raise UsageError(
            str(root),
            "git cannot report what is committed without running programs from the project's configuration.",
            why="git is older than 2.31, or .git/config is damaged or names too many.",
            next_step="Check .git/config, or write anyway with --allow-dirty.",
        )


def submodules(root: Path) -> list[str]:
    """Return the paths of the submodules that a project declares, whether or not they are checked out."""
    try:
        with Beneath(root) as tree:
            tree.read(".gitmodules", _MAX_MODULES_BYTES)  # git would follow a link, and wait for a pipe
    except (OSError, DataError):
        return []
    done = _git(root, "config", "--file", str(root / ".gitmodules"), "--get-regexp", r"^submodule\..*\.path$")
    return (
        sorted(line.partition(" ")[2] for line in done.stdout.splitlines() if " " in line) if done and done.ok else []
    )


PATCHING = ("--whitespace=nowarn", "--unidiff-zero")
"""For patches of files with other changes: without the second, a hunk at a file's head or end applies only there."""


def applies(folder: Path, patch: Path, *, reverse: bool = False) -> bool:
    """Tell whether a patch applies in a folder that is taken for no repository; nothing is changed.

    Args:
        folder: Where.
        patch: The patch.
        reverse: Whether it is turned round.
    """
    done = run_command(
        ["git", "-C", str(folder), "apply", *PATCHING, "--check", *(["-R"] if reverse else []), str(patch.absolute())],
        time_limit_s=_TIME_LIMIT_S,
        env=_environment(_ALWAYS) | {"GIT_DIR": os.devnull},
    )
    return done.ok


def apply_patch(folder: Path, patch: Path) -> CommandResult:
    """Apply a patch in a folder that is taken for no repository, whatever lies in it or above it."""
    return run_command(
        ["git", "-C", str(folder), "apply", "--whitespace=nowarn", str(patch.absolute())],
        time_limit_s=_TIME_LIMIT_S * 2,
        env=_environment(_ALWAYS) | {"GIT_DIR": os.devnull},
    )
