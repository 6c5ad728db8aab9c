"""The commit of a checkout, read without git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rocmend.core.version import _checkout_commit


def _git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
    done = subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nname = "rocmend"\n')
    _git(root, "init", "-q", "-b", "main")
    _git(root, "add", ".")
    _git(root, "commit", "-q", "-m", "first")
    return root


def test_the_commit_of_a_checkout_is_what_git_says(checkout: Path, tmp_path: Path) -> None:
    commit = _git(checkout, "rev-parse", "HEAD")
    assert _checkout_commit(checkout) == commit
    _git(checkout, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    assert _checkout_commit(tmp_path / "other") == commit
    _git(checkout, "pack-refs", "--all")
    assert _checkout_commit(checkout) == commit
    _git(checkout, "checkout", "-q", "--detach")
    assert _checkout_commit(checkout) == commit


def test_where_there_is_no_checkout_there_is_no_commit(checkout: Path, tmp_path: Path) -> None:
    assert not _checkout_commit(tmp_path)
    (checkout / "pyproject.toml").write_text('[project]\nname = "another"\n')
    assert not _checkout_commit(checkout), "rocmend lies in a folder of another project"
    (checkout / "pyproject.toml").write_text('[project]\nname = "rocmend"\n')
    (checkout / ".git" / "HEAD").write_bytes(b"ref: refs/heads/gone\n")
    assert not _checkout_commit(checkout)
    (checkout / ".git" / "HEAD").write_bytes(b"\xff\xfe")
    assert not _checkout_commit(checkout)
