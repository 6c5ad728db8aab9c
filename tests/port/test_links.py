"""A project's links: what lies behind one, at the end of a path or within it, is not read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath, UnsafePathError
from rocmend.core.errors import DataError, UsageError
from rocmend.port.build.asked import project
from rocmend.port.build.beside import settled
from rocmend.port.packages import Reaches
from rocmend.port.records import Issue
from rocmend.port.settings import project_document, settings
from rocmend.port.verify import cases, golden
from rocmend.port.verify.units import standard

CASE = b'{"kernel":"k","unit":"u","grid":[1,1,1],"block":[1,1,1],"parameters":[]}'


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "link").symlink_to(outside)
    return folder


def names(root: Path) -> list[str]:
    return [one.name for one in project(root).asked]


def test_lists_of_requirements_are_not_included_through_a_link(root: Path, outside: Path) -> None:
    (outside / "x.txt").write_text("secret-package\n")
    (root / "sub" / "own.txt").write_text("torch\n")
    (root / "last.txt").symlink_to(outside / "x.txt")
    (root / "requirements.txt").write_text("-r sub/link/x.txt\n-r last.txt\n-r sub/own.txt\nnumpy\n")
    assert names(root) == ["numpy", "torch"]


def test_members_of_a_workspace_are_not_found_through_a_link(root: Path, outside: Path) -> None:
    for folder in (outside / "member", root / "sub" / "member"):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(f"[project]\nname = 'in-{folder.parent.name}'\n")
    (root / "pyproject.toml").write_text(
        "[tool.uv]\nworkspace = {members = ['sub/*', 'sub/link/*', '**']}\n"
        "sources = {in-outside = {workspace = true}, in-sub = {workspace = true}}\n"
        "[project]\nname = 'x'\ndependencies = ['in-outside', 'in-sub']\n"
    )
    assert {one.name: one.local for one in project(root).asked} == {"in-outside": "", "in-sub": "sub/member"}


def test_settings_are_not_read_through_a_link(root: Path, outside: Path) -> None:
    (outside / "pyproject.toml").write_text("[tool.rocmend.port]\nexclude = ['*.py']\n")
    with pytest.raises(UnsafePathError, match="link"):
        project_document(root, "sub/link")
    (root / "pyproject.toml").symlink_to(outside / "pyproject.toml")
    with pytest.raises(UsageError, match="link"):
        settings(root)
    assert not project(root).installable


def test_a_package_is_none_through_a_link(root: Path, outside: Path) -> None:
    flag = b"import torch\nIS_ROCM = torch.version.hip is not None\n"
    (outside / "__init__.py").write_bytes(b"")
    (outside / "flags.py").write_bytes(flag)
    (root / "pkg").symlink_to(outside)
    reaches = Reaches(root)
    assert reaches.of("pkg/a.py", b"import torch\n").module == ""
    (root / "own").mkdir()
    (root / "own" / "__init__.py").write_bytes(b"")
    (root / "own" / "flags.py").symlink_to(outside / "flags.py")
    (root / "own" / "inner").symlink_to(outside)
    assert Reaches(root).of("own/a.py", b"import own\n").module == "own._rocm"
    (root / "own" / "flags.py").unlink()
    (root / "own" / "flags.py").write_bytes(flag)
    assert Reaches(root).of("own/a.py", b"import own\n").module == "own.flags:IS_ROCM"


def test_a_sibling_module_is_none_through_a_link(root: Path, outside: Path) -> None:
    (outside / "helper.py").write_text("def f():\n    pass\n")
    (root / "helper.py").symlink_to(outside / "helper.py")
    assert Reaches(root).of("a.py", b"from helper import f\n").module == ""
    (root / "helper.py").unlink()
    (root / "helper.py").write_text("def f():\n    pass\n")
    assert Reaches(root).of("a.py", b"from helper import f\n").module == "_rocm"


def test_a_file_s_rocm_side_is_not_read_through_a_link(root: Path, outside: Path, make_issue: Issue) -> None:
    (outside / "Dockerfile").write_text("FROM nvidia/cuda\n")
    (outside / "Dockerfile.rocm").write_text("FROM rocm/dev\n")
    assert settled(root, "sub/Dockerfile", [make_issue]) == frozenset()
    (root / "sub" / "Dockerfile").write_text("FROM nvidia/cuda\n")
    (root / "sub" / "Dockerfile.rocm").write_text("FROM rocm/dev\n")
    assert settled(root, "sub/Dockerfile", [make_issue]) == {make_issue}
    assert settled(root, "sub/link/Dockerfile", [make_issue]) == frozenset()


@pytest.fixture
def make_issue() -> Issue:
    from rocmend.core.records import Severity
    from rocmend.port.records import Edit, Outcome

    edits = (Edit(5, 16, b"rocm/dev"),)
    where = ("sub/Dockerfile", 1, 6, 1, 5, 16)
    return Issue("BD001", *where, Severity.WARNING, Outcome.AUTO, "It is CUDA's.", "", "FROM nvidia/cuda", edits)


def test_cases_are_not_read_through_a_link(root: Path, outside: Path) -> None:
    (outside / "case.json").write_bytes(CASE)
    (outside / "arg0.in").write_bytes(b"secret")
    folder = root / cases.FOLDER
    folder.mkdir(parents=True)
    (folder / "linked").symlink_to(outside)
    with Beneath(root) as tree:
        assert cases.read_all(tree) == []
        for read in (
            lambda: cases.read(tree, f"{cases.FOLDER}/linked"),
            lambda: cases.buffer(tree, "sub/link", "arg0.in"),
        ):
            with pytest.raises(UnsafePathError, match="link"):
                read()
    folder.rename(outside / "cases")
    folder.symlink_to(outside / "cases")
    with Beneath(root) as tree, pytest.raises(UnsafePathError, match="link"):
        cases.read_all(tree)


def test_golden_vectors_are_not_read_through_a_link(root: Path, outside: Path) -> None:
    (outside / "a.json").write_text('{"version": 1, "machine": "m", "vectors": []}')
    with Beneath(root) as tree, pytest.raises(UnsafePathError, match="link"):
        golden.read(tree, "sub/link/a.json")


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def link(path: Path, outside: Path) -> None:
    (outside / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 23)\n")
    path.symlink_to(outside / "CMakeLists.txt")


@pytest.mark.parametrize("make", [pipe, link])
def test_builds_that_are_no_files_say_nothing_of_the_standard(
    root: Path, outside: Path, make: Callable[[Path, Path], None]
) -> None:
    make(root / "CMakeLists.txt", outside)
    (root / "sub" / "rules.mk").write_text("FLAGS = -std=c++20\n")
    with Beneath(root) as tree:
        assert standard(tree) == "-std=c++20"


def test_a_document_that_is_a_pipe_or_a_folder_is_refused(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with Beneath(root) as tree:
        for path in ("pipe", "sub", "sub/link", "sub/link/x", "../outside/x", "/etc/passwd", "a\0b"):
            with pytest.raises(DataError):
                tree.document(path, 1000)
            assert not tree.is_file(path)
        with pytest.raises(FileNotFoundError):
            tree.document("none", 1000)
        assert list(tree.files(deep=True)) == []
        (root / "sub" / "b").write_text("")
        (root / "a").write_text("")
        assert list(tree.files(deep=True)) == ["a", "sub/b"]
