"""``port lint``."""

from __future__ import annotations

from pathlib import Path

import pytest

from .port_project import KERNEL, Rocmend, data_of


def test_single_files_are_linted_by_the_projects_settings(
    rocmend: Rocmend, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\nignore = ["PY02"]\nexclude = ["third_party/*"]\n')
    (project / "third_party").mkdir()
    (project / "third_party" / "other.cu").write_text(KERNEL)
    (project / "README.md").write_text("cudaMalloc\n")
    monkeypatch.chdir(project)
    rest = ("README.md", "fast/train.py", "third_party/other.cu")
    assert rocmend("port", "lint", *rest).code == 0
    found = rocmend("port", "lint", "./kernel.cu", *rest, "--json")
    assert (found.code, [file["path"] for file in data_of(found)["files"]]) == (1, ["kernel.cu"])
    assert "CU04" in rocmend("port", "lint", project / "kernel.cu").out
    assert rocmend("port", "lint", "../elsewhere.cu").code == 2
    rocmend("port", ".", "--write-baseline", "known.json")
    (project / "new.cu").write_text(KERNEL)
    known = data_of(rocmend("port", "lint", "kernel.cu", "new.cu", "--baseline", "known.json", "--json"))
    assert [file["path"] for file in known["files"]] == ["new.cu"]
    rocmend("port", ".", "--apply")
    assert rocmend("port", "lint", "kernel.cu", "new.cu").code == 0, "a guard is no finding"


def test_lint_reads_what_was_named_or_says_that_it_did_not(
    rocmend: Rocmend, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "inner" / ".git").mkdir(parents=True)
    (project / "inner" / "other.cu").write_text(KERNEL)
    (project / "good.cu").write_text("int main() { return 0; }\n")
    (project / "README.md").write_text("cudaMalloc\n")
    monkeypatch.chdir(project)
    for wrong, why in {
        ("nothing.cu",): "nothing.cu does not exist",
        ("",): "path is empty",
        ("fast",): "fast is a folder",
        ("inner/other.cu",): "a git repository of its own, inner",
        ("good.cu", "typo.cu"): "typo.cu does not exist",
    }.items():
        done = rocmend("port", "lint", *(str(one) for one in wrong))
        assert (done.code, why in " ".join(done.err.split())) == (2, True), (wrong, done)
    done = rocmend("port", "lint", "README.md")
    assert done.code == 0
    assert "No file was read" in done.out
    assert "README.md was not read: its name is not" in " ".join(done.out.split())
    assert "1 file read" in rocmend("port", "lint", "good.cu", "README.md").out
