"""Changes of machine code that matter are found, and nothing is found in the code as it is."""

import sys

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rocm", reason="rocm-llvm-python is not installed")
pytest.importorskip("ziglang")

from benchmarks.emulate import mutants


@pytest.mark.slow
def test_changes_of_machine_code_are_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["mutants", "--targets", "gfx1100,gfx942", "--most", "4"])
    assert mutants.main() == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert int(said.split()[2]) > 100, said
