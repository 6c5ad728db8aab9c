from __future__ import annotations

import functools
import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocmend.cli.main import main

from .port_project import KERNEL, TRAINING

SOURCE = Path(__file__).parents[2] / "src" / "rocmend"
MACHINES = SOURCE / "examples" / "machines"


class Done(NamedTuple):
    """What a command printed and how it left."""

    code: int
    out: str
    err: str


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run the program in this process, as a person at an 80-column terminal without colours would."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("ROCMEND_KB", raising=False)

    def run(*arguments: str | Path) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        code = stop.value.code
        assert isinstance(code, int)
        sys.stdout.flush()
        return Done(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """Run the installed command as a person does, each command line once a session, in an empty folder or in ``cwd``.

    A variable that is set to None is taken away.
    """
    folder = tmp_path_factory.mktemp("installed")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ROCMEND_", "PYTHONPATH"))}
    env = {**kept, "COLUMNS": "80", "NO_COLOR": "1", "ROCMEND_HOME": str(folder / "home")}
    env["ROCMEND_MEASURING"] = "1"  # as in tests/conftest.py
    (folder / "cwd").mkdir()

    @functools.cache
    def run(*words: str, cwd: Path = folder / "cwd", **changed: str | None) -> Done:
        command = [str(Path(sys.executable).with_name("rocmend")), *words]
        own = {name: value for name, value in (env | changed).items() if value is not None}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=own, timeout=120)
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def _closure(name: str, found: dict[str, metadata.Distribution]) -> None:
    """Collect a distribution and those that it needs without any extra."""
    key = canonicalize_name(name)
    if key not in found:
        found[key] = metadata.distribution(name)
        for text in found[key].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                _closure(needed.name, found)


def plain_installation(at: Path) -> Path:
    """Make an environment with rocmend's own folder and what it needs, linked, without a network; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", at], check=True)
    found: dict[str, metadata.Distribution] = {}
    _closure("rocmend", found)
    del found["rocmend"]
    (site,) = at.glob("lib/python*/site-packages")
    (site / "rocmend").symlink_to(SOURCE)
    for one in found.values():
        tops = {file.parts[0] for file in one.files or () if file.parts[0] not in {"..", "__pycache__"}}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(one.locate_file(top))))
    return at / "bin" / "python"


@pytest.fixture(scope="session")
def machines() -> Path:
    return MACHINES


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    (root / "fast").mkdir(parents=True)
    (root / "fast" / "__init__.py").write_text("")
    (root / "fast" / "train.py").write_text(TRAINING)
    (root / "kernel.cu").write_text(KERNEL)
    return root
