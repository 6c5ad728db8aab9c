"""What of a project is looked at, and what is left out and why."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.port.walk import Walked, walk


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("", encoding="utf-8")


def names(walked: Walked) -> list[str]:
    return [file.path for file in walked.files]


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, "-C", str(root), *arguments], check=True, capture_output=True)


def test_sources_are_found_by_name_and_the_rest_is_not(tmp_path: Path) -> None:
    make(tmp_path, "b/k.cu", "b/k.cuh", "a.py", "c.cpp", "c.h", "photo.png", "notes.md", "weights.bin")
    assert names(walk(tmp_path)) == ["a.py", "b/k.cu", "b/k.cuh", "c.cpp", "c.h"]


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("env/pyvenv.cfg", "virtual environment"),
        ("env/conda-meta/history", "conda"),
        ("env/CMakeCache.txt", "build output"),
        ("env/lib.linux-x86_64-cpython-311/x", "build output"),
        ("env/.git", "repository"),
    ],
)
def test_a_folder_is_left_out_by_what_it_holds(tmp_path: Path, marker: str, reason: str) -> None:
    make(tmp_path, "env/deep/a.py", "build/mine.py", marker)
    walked = walk(tmp_path)
    assert names(walked) == ["build/mine.py"], "a folder is not left out for its name alone"
    assert [(left.path, reason in left.reason) for left in walked.folders] == [("env", True)]


def test_the_project_itself_is_read_even_where_it_is_one_of_those(tmp_path: Path) -> None:
    make(tmp_path, "conda-meta/history", ".git/HEAD", "a.py")
    assert names(walk(tmp_path)) == ["a.py"]


def test_folders_of_tools_are_never_entered(tmp_path: Path) -> None:
    make(
        tmp_path,
        "node_modules/x.py",
        ".git/hooks.py",
        "__pycache__/x.py",
        ".rocmend/port/x.py",
        "x.egg-info/x.py",
        "y.py",
    )
    assert names(walk(tmp_path)) == ["y.py"]


def test_links_are_never_followed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "real/a.py")
    make(tmp_path, "outside/b.py", "outside.py")
    (root / "real" / "loop").symlink_to(root)
    (root / "self.py").symlink_to(root / "self.py")
    (root / "inside.py").symlink_to(root / "real" / "a.py")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "out.png").symlink_to(tmp_path / "outside.py")
    (root / "gone.py").symlink_to(root / "nothing.py")
    walked = walk(root)
    assert names(walked) == ["real/a.py"]
    reasons = {left.path: left.reason for left in walked.left_out}
    assert set(reasons) == {"self.py", "out", "out.py", "gone.py"}
    assert "broken link" in reasons["self.py"]
    assert "broken link" in reasons["gone.py"]
    assert "outside the project" in reasons["out"]


def test_pipes_and_unreadable_folders_are_told(tmp_path: Path) -> None:
    make(tmp_path, "shut/a.py")
    os.mkfifo(tmp_path / "pipe.py")
    walked = walk(tmp_path)
    assert ("pipe.py", "not a regular file") in walked.left_out
    assert names(walked) == ["shut/a.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    make(tmp_path, "shut/a.py")
    (tmp_path / "shut").chmod(0)
    walked = walk(tmp_path)
    (tmp_path / "shut").chmod(0o755)
    assert [left.path for left in walked.folders] == ["shut"]


def test_a_name_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    with Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.py")).open("wb"):
        pass
    walked = walk(tmp_path)
    assert names(walked) == []
    assert walked.left_out == [("caf\ufffd.py", "its name is not UTF-8")]


def test_exclusions_are_endings_and_patterns(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "gen/a.py", "gen/b_generated.py", "c_generated.py")
    assert names(walk(tmp_path, exclude=("_generated.py", "gen/a.*"))) == ["a.py"]


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "out/b.py", "c.py", "d/tracked.py")
    (tmp_path / ".gitignore").write_text("out/\nc.py\nd/\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "d/tracked.py")
    walked = walk(tmp_path)
    assert names(walked) == ["a.py", "d/tracked.py"]
    assert [left.path for left in walked.folders] == ["out"]
    assert names(walk(tmp_path / "out")) == ["b.py"], "a folder that is asked for is read, ignored or not"
    assert names(walk(tmp_path / "d")) == ["tracked.py"]


def test_submodules_are_listed_apart(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for root in (inner, outer):
        make(root, "a.py")
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "x")
    git(outer, "submodule", "add", "-q", str(inner), "third_party/inner")
    walked = walk(outer)
    assert names(walked) == ["a.py"]
    assert walked.submodules == ["third_party/inner"]


_NAME = st.text(alphabet="ab.-_ é\n", min_size=1, max_size=6).filter(lambda name: name not in {".", ".."})


@settings(max_examples=40, deadline=None)
@given(tree=st.lists(st.lists(_NAME, min_size=1, max_size=3), max_size=8))
def test_every_source_is_found_once_whatever_the_tree(
    tmp_path_factory: pytest.TempPathFactory, tree: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    wanted = set()
    for parts in tree:
        path = root.joinpath(*parts[:-1], parts[-1] + ".py")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
        wanted.add(str(path.relative_to(root)))
    found = names(walk(root))
    assert found == sorted(wanted)
