"""Documents that a stranger wrote to take the machine down: through the program, with its time and memory measured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

CPU_LIMIT_S = 10
"""Of the whole command, its start included; each takes about one second on a slow machine."""
MEMORY_LIMIT_BYTES = 300 << 20

DOTS = "a." * 50_000 + "a = 1"
NESTED = "a = " + "[" * 100_000
DIGITS = "a = " + "1" * 100_000
DEEP_JSON = '{"captured_at": ' + "[" * 100_000
DEEP_PATHS = '{"denied": {' + ",".join(f'"/{number}{"/x" * 2000}": ""' for number in range(1000)) + "}}"
PARENTHESES = "torch; " + "(" * 100_000
WIDE = "[project]\nname = 'x'\ndependencies = [" + "'a'," * 20_000 + "]"
MEMBERS = "[tool.uv]\nworkspace = {members = ['/*', '../*', '', '**/**/**']}\nsources = {torch = {workspace = true}}\n"
MEMBERS += "[project]\nname = 'x'\ndependencies = ['torch']"


class Measured(NamedTuple):
    """How a command ended and what it took."""

    code: int
    err: str
    cpu_s: float
    memory_bytes: int


LAUNCHER = """
import os, resource, signal, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, start_new_session=True)
guard = threading.Timer(30, os.killpg, (child.pid, signal.SIGKILL))
guard.start()
code = child.wait()
guard.cancel()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
"""
"""A small process that starts the program: its peak would else begin with what this one has."""


def measured(folder: Path, *arguments: str) -> Measured:
    """Run the program; end it, and fail, where it waits for ever."""
    env = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache"), "COLUMNS": "200"}
    command = [sys.executable, "-S", "-c", LAUNCHER, sys.executable, "-m", "rocmend", *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, errors="replace", check=True)
    code, cpu_s, memory_bytes = done.stdout.split()
    return Measured(int(code), done.stderr, float(cpu_s), int(memory_bytes))


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def captured(name: str, text: str) -> Callable[[Path], None]:
    """Return what makes a captured machine with one document of its own."""

    def make(path: Path) -> None:
        path.mkdir()
        (path / "machine.json").write_text('{"captured_at": "2026-01-01T00:00:00Z", "name": "x"}')
        (path / name).write_text(text)

    return make


@pytest.mark.parametrize(
    ("command", "name", "content", "said"),
    [
        ("port run .", "pyproject.toml", DOTS, "line 1 nests deeper than 32"),
        ("port run .", "pyproject.toml", DIGITS, "more than 64 digits"),
        ("port run .", "pyproject.toml", fifo, "is a FIFO"),
        ("port run .", "pyproject.toml", link, "a symbolic link"),
        ("port run .", "pyproject.toml", "[tool.rocmend.port]\ntime-limit-s = 1e9", "Expected `float` <= 3600"),
        ("port run . --baseline known.json", "known.json", fifo, "is a FIFO"),
        ("lab plan x.toml", "x.toml", DOTS, "line 1 nests deeper than 32"),
        ("lab plan x.toml", "x.toml", NESTED, "line 1 nests deeper than 32"),
        ("lab plan x.toml", "x.toml", fifo, "is a FIFO"),
        ("doctor --machine x", "x", captured("machine.json", DEEP_JSON), "is no JSON of the capture layout"),
        ("doctor --machine x", "x", captured("tree.json", DEEP_PATHS), "too many and too deep"),
    ],
)
def test_a_hostile_document_is_refused_in_one_sentence(
    tmp_path: Path, command: str, name: str, content: str | Callable[[Path], None], said: str
) -> None:
    (tmp_path / "kernel.cu").write_text("__global__ void k() {}\n")
    path = tmp_path / name
    content(path) if callable(content) else path.write_text(content)
    done = measured(tmp_path, *command.split())
    assert done.code == 2, done
    assert said in done.err
    assert "Traceback" not in done.err
    assert len(done.err) < 1000
    assert done.cpu_s < CPU_LIMIT_S
    assert done.memory_bytes < MEMORY_LIMIT_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name", "content"),
    [
        ("port audit .", "pyproject.toml", DOTS),
        ("port audit .", "pyproject.toml", WIDE),
        ("port audit .", "pyproject.toml", MEMBERS),
        ("port audit .", "requirements.txt", PARENTHESES),
        ("port audit .", "requirements.txt", "torch==" + "1" * 5000),
        ("port audit .", "requirements.txt", fifo),
        ("port audit .", "setup.py", fifo),
    ],
)
def test_a_hostile_document_is_passed_over(
    tmp_path: Path, command: str, name: str, content: str | Callable[[Path], None]
) -> None:
    path = tmp_path / name
    content(path) if callable(content) else path.write_text(content)
    done = measured(tmp_path, *command.split())
    assert done.code in {0, 1}, done
    assert "Traceback" not in done.err
    assert done.cpu_s < CPU_LIMIT_S
    assert done.memory_bytes < MEMORY_LIMIT_BYTES
