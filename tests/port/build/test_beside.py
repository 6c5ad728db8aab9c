"""What a file written beside the original settles."""

from __future__ import annotations

from pathlib import Path

from rocmend.port.analyse import read
from rocmend.port.build.beside import settled
from rocmend.port.build.write import ported
from rocmend.port.records import Outcome

TEXT = b"-r base.txt\ntorch==2.1\njax[cuda12]\nnumpy\n"


def test_only_what_stands_in_the_file_beside_is_settled(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(TEXT)
    issues = read("requirements.txt", TEXT).issues
    automatic = {issue for issue in issues if issue.outcome is Outcome.AUTO}
    assert {issue.rule for issue in issues} == {"DP01", "DP02"}
    assert settled(tmp_path, "requirements.txt", issues) == frozenset()
    beside = tmp_path / "requirements-rocm.txt"
    beside.write_bytes(ported("requirements.txt", TEXT, issues))
    assert settled(tmp_path, "requirements.txt", issues) == frozenset(issues)
    beside.write_bytes(ported("requirements.txt", TEXT, automatic).replace(b"base.txt", b"base-rocm.txt"))
    assert settled(tmp_path, "requirements.txt", issues) == automatic
    beside.write_bytes(TEXT)
    assert settled(tmp_path, "requirements.txt", issues) == frozenset()


def test_files_that_are_gated_have_nothing_beside_them(tmp_path: Path) -> None:
    text = b"NVCC = nvcc\n"
    (tmp_path / "Makefile").write_bytes(text)
    assert settled(tmp_path, "Makefile", read("Makefile", text).issues) == frozenset()
