"""What the container image is built from."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def kept_out(name: str) -> bool:
    """Tell whether .containerignore keeps a file or folder at the top out of the build."""
    out = False
    for line in (ROOT / ".containerignore").read_text().split():
        if fnmatch.fnmatchcase(name, line.removeprefix("!")):
            out = not line.startswith("!")
    return out


def test_a_wheel_is_built_from_what_the_container_image_copies(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the extra test has it")
    source = tmp_path / "source"
    source.mkdir()
    copied = [
        name
        for words in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
        for name in words.split()[:-1]
    ]
    assert "src" in copied
    for name in copied:
        assert not kept_out(name), f".containerignore keeps {name} out"
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "rocmend/cli/main.py" in names
    assert any(name.endswith("share/man/man1/rocmend.1") for name in names)
