"""A run of probes that is killed leaves no working folder behind for long."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import rocmend
from rocmend.core import scratch
from rocmend.runner.interpreter import importable


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import os\nfrom rocmend.runner.interpreter import importable\nwith importable(): os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", source], check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == -9
    assert len(list(tmp_path.glob("rocmend-torch-*"))) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_swept", set())
    with importable() as home:
        assert list(tmp_path.iterdir()) == [home]
        assert (home / "rocmend").is_symlink()
    assert list(tmp_path.iterdir()) == []
    assert Path(rocmend.__file__).is_file()  # a link to it was in both
