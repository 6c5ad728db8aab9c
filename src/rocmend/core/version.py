"""Which rocmend this is: its version and, where it is known, the commit."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import re
from pathlib import Path

from rocmend import __version__

_COMMIT = re.compile(r"[0-9a-f]{40}")
_OURS = re.compile(r'^name = "rocmend"$', re.MULTILINE)
_SHOWN = 12
"""Digits of a commit that are shown."""


@functools.cache
def version_text() -> str:
    """Return the version with the commit that it was installed from: ``0.1.0 (1a2b3c4d5e6f)``.

    pip notes the commit of what it installed from a repository (PEP 610, ``direct_url.json``); in a checkout, the one
    that is checked out is read from ``.git``; whether files differ from it is not looked at.
    """
    source = Path(__file__).resolve().parents[2]
    commit = _installed_commit() or (_checkout_commit(source.parent) if source.name == "src" else "")
    return f"{__version__} ({commit[:_SHOWN]})" if commit else __version__


def _installed_commit() -> str:
    try:
        text = importlib.metadata.distribution("rocmend").read_text("direct_url.json")
        commit = json.loads(text or "{}").get("vcs_info", {}).get("commit_id", "")
    except (importlib.metadata.PackageNotFoundError, ValueError, AttributeError, OSError):
        return ""
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else ""


def _checkout_commit(root: Path) -> str:
    """Return the commit that is checked out, without starting git; empty where the package lies in no checkout."""
    try:
        if not _OURS.search((root / "pyproject.toml").read_text(encoding="utf-8")):
            return ""
        git = root / ".git"
        if git.is_file():  # a worktree
            git = root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        common = git / "commondir"
        shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
        return head if _COMMIT.fullmatch(head) else _ref(shared, head.removeprefix("ref:").strip())
    except (OSError, UnicodeDecodeError):
        return ""


def _ref(git: Path, name: str) -> str:
    loose, packed = git / name, git / "packed-refs"
    if loose.is_file():
        commit = loose.read_text(encoding="utf-8").strip()
        return commit if _COMMIT.fullmatch(commit) else ""
    for line in packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else ():
        commit, _, ref = line.partition(" ")
        if ref == name and _COMMIT.fullmatch(commit):
            return commit
    return ""
