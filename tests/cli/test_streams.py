"""The program where its output goes wrong: closed, full or torn off, or to a terminal that knows ASCII only."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROCMEND = f"{shlex.quote(sys.executable)} -m rocmend"


def run(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, env={**os.environ, **environment}, timeout=60, check=False
    )


@pytest.mark.parametrize("command", ["kb sources --json", "doctor --machine {machines}/strix-halo", "machine show"])
def test_a_reader_that_stops_is_told_apart_from_findings(command: str, machines: Path) -> None:
    done = run(f"{ROCMEND} {command.format(machines=machines)} | true; echo ${{PIPESTATUS[0]}}")
    assert done.stdout == b"141\n"
    assert done.stderr == b""


@pytest.mark.parametrize("command", ["kb sources --json", "targets", "targets --json", "kb sources --format md"])
def test_a_full_disk_is_said_in_words(command: str) -> None:
    done = run(f"{ROCMEND} {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr == b"rocmend: [system] No space left on device (standard output).\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_result(closed: str, machines: Path) -> None:
    done = run(f"{ROCMEND} doctor --machine {machines}/strix-halo {closed}")
    assert done.returncode == 1
    assert done.stderr == b""


@pytest.mark.parametrize("output_format", ["human", "md", "json", "sarif"])
def test_an_ascii_locale_is_enough(output_format: str, machines: Path) -> None:
    done = run(
        f"{ROCMEND} doctor --machine {machines}/strix-halo --format {output_format}",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    assert done.returncode == 1
    assert done.stderr == b""
    if output_format == "human":
        assert done.stdout.isascii()
    elif output_format == "md":
        assert not done.stdout.decode("utf-8").isascii()
    else:
        json.loads(done.stdout.decode("utf-8"))


def test_a_file_name_that_is_no_text(tmp_path: Path, machines: Path) -> None:
    library = os.fsencode(tmp_path) + b"/\xff.so"
    shutil.copy(os.fsencode(sys.executable), library)
    quoted = f"'{tmp_path}/'$'\\xff.so'"
    done = run(f"{ROCMEND} wheel inspect --json {quoted}")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "\\udcff.so" in json.loads(done.stdout)["data"]["inspection"]["path"]
    report = tmp_path / "report.html"
    done = run(f"{ROCMEND} check --machine {machines}/strix-halo --no-store --wheel {quoted} -o {report}")
    said = done.stderr.splitlines()  # a slow machine is told of progress
    assert (done.returncode, [line for line in said if not line.startswith(b"rocmend check: ")]) == (1, [])
    assert "?.so" in report.read_text(encoding="utf-8")


def test_bars_and_their_legend_are_told_apart_in_ascii(installed: Callable[..., Any]) -> None:
    done = installed("doctor", "--machine", "strix-halo", "-v", PYTHONIOENCODING="ascii")
    figures = done.out.partition("In figures")[2]
    assert "?" not in figures
    assert re.search(r"^  =+\++$", figures, re.MULTILINE)
    assert "= GTT" in figures


def test_prose_has_no_trailing_blanks_and_a_script_no_markdown(installed: Callable[..., Any]) -> None:
    shown = installed("kb", "show", "firmware-mes-0x83").out
    assert not [line for line in shown.splitlines() if line != line.rstrip()]
    script = installed("doctor", "--machine", "strix-halo", "--plan", "sh").out.partition("about_1()")[2]
    assert "`" not in script
