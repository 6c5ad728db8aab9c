"""Every test is in one tier, the same one each time; the fast one has tests of every folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
FILE = """
import pytest

def test_one(): pass

@pytest.mark.slow
def test_long(): pass

@pytest.mark.parametrize("n", [*range(50), pytest.param(50, marks=pytest.mark.fast), *range(51, 100)])
def test_many(n): pass
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    (tmp_path / "tests" / "room").mkdir(parents=True)
    (tmp_path / "tests" / "room" / "test_file.py").write_text(FILE)
    return tmp_path


def run(tree: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.tiers", "-p", "xdist", "-q", *options]
    env = os.environ | {"PYTHONPATH": str(TOP), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)


def ids(tree: Path, tier: str) -> list[str]:
    return [line for line in run(tree, "--collect-only", "--tier", tier).stdout.splitlines() if "::" in line]


def test_fast_and_rest_are_all(tree: Path) -> None:
    fast, rest, every = (ids(tree, tier) for tier in ("fast", "rest", "all"))
    assert sorted(fast + rest) == sorted(every)
    assert len(every) == 102
    names = {one.partition("::")[2] for one in fast}
    assert names == {"test_one", "test_many[0]", "test_many[50]", "test_many[99]"}


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_folder_without_a_fast_test_fails(tree: Path, workers: str) -> None:
    (tree / "tests" / "other").mkdir()
    (tree / "tests" / "other" / "test_other.py").write_text("import pytest\n\n@pytest.mark.slow\ndef test_x(): pass\n")
    done = run(tree, "--tier", "fast", "-n", workers)
    assert done.returncode == 1
    assert "no test in the fast tier: other" in done.stdout
    assert (
        run(tree, "--tier", "fast", "-n", workers, "tests/other/test_other.py").returncode
        == pytest.ExitCode.NO_TESTS_COLLECTED
    )


@pytest.mark.slow
def test_times_name_what_is_too_slow(tree: Path) -> None:
    file = tree / "tests" / "room" / "test_busy.py"
    file.write_text("import time\n\ndef test_busy():\n    while time.process_time() < 2.6: pass\n")
    told = run(tree, "--tier", "fast", "--times", "-n", "1").stdout.partition("mark them slow")[2]
    assert "test_busy.py::test_busy" in told
    assert "test_one" not in told
