"""``python -m rocmend.fallbacks``: the program runs as it would alone, with its convolutions routed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.cpu

PROGRAM = """
import sys
import neighbour
import torch
from rocmend.fallbacks import conv
with torch.no_grad():
    torch.nn.Conv1d(2, 3, 3)(torch.randn(1, 2, 9))
print(__name__, sys.argv[1:], conv.SafeConv.active[0].mode if conv.SafeConv.active else "none", neighbour.HERE)
sys.exit(5)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "neighbour.py").write_text("HERE = 'yes'\n")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocmend.fallbacks", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
@pytest.mark.parametrize("program", [["program.py"], ["-m", "program"]])
def test_a_script_and_a_module_run_routed(folder: Path, program: list[str]) -> None:
    done = run(folder, "--conv", "gemm", "--explain", *program, "-x", "--conv=other")
    assert done.stdout.strip() == "__main__ ['-x', '--conv=other'] gemm yes", done.stderr
    assert done.returncode == 5
    assert "safe_conv is in force on cpu devices, mode gemm" in done.stderr


@pytest.mark.slow
def test_off_routes_nothing(folder: Path) -> None:
    assert " none " in run(folder, "--conv", "off", "program.py").stdout


@pytest.mark.slow
def test_a_missing_file_is_a_usage_error(folder: Path) -> None:
    done = run(folder, "absent.py")
    assert done.returncode == 2
    assert "no file absent.py" in done.stderr
