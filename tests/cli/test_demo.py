"""The examples that come with rocmend, through the installed command, far from the repository."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rocmend.cli.main import command_modules
from rocmend.core.examples import MACHINES

TOP = Path(__file__).parents[2]


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocmend", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_a_machine_is_diagnosed_and_leaves_a_report(tmp_path: Path) -> None:
    done = run("demo", "strix-halo", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "--no-probe" not in (tmp_path / "rocmend-report-strix-halo.html").read_text()
    assert "(gfx1151-cwsr-save-area-too-small)" in " ".join(done.stdout.split())
    assert len(done.stdout.splitlines()) < 110
    assert done.stdout.rstrip().endswith("Report: rocmend-report-strix-halo.html")
    assert "<html" in (tmp_path / "rocmend-report-strix-halo.html").read_text()


def test_a_machine_is_copied_to_be_changed(tmp_path: Path) -> None:
    done = run("demo", "strix-halo", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rocmend doctor --machine mine" in done.stdout
    parameters = tmp_path / "mine" / "root" / "proc" / "cmdline"
    parameters.write_text(parameters.read_text().replace("aamdgpu.cwsr_enable=0 ", ""))
    changed = run("doctor", "--machine", "mine", cwd=tmp_path).stdout
    assert "gfx1151-cwsr-save-area-too-small" in changed
    assert "kernel-unknown-parameter" not in changed
    again = run("demo", "strix-halo", "mine", cwd=tmp_path)
    assert again.returncode == 2
    assert "not overwritten" in again.stderr


def test_the_list_names_every_machine(tmp_path: Path) -> None:
    data = msgspec.json.decode(run("demo", "--json", cwd=tmp_path).stdout)["data"]
    assert set(data["machines"]) == {path.name for path in MACHINES.iterdir()}
    assert all(data["machines"].values())


@pytest.mark.parametrize(("name", "holds"), [("port", "csrc/attention.cu"), ("lab", "local-demo.toml")])
def test_a_copy_is_new_and_the_commands_that_it_names_work(name: str, holds: str, tmp_path: Path) -> None:
    done = run("demo", name, "a copy", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "a copy" / holds).is_file()
    first = msgspec.json.decode(done.stdout)["data"]["commands"][0]
    tried = run(*shlex.split(first)[1:], cwd=tmp_path)
    assert tried.returncode in {0, 1}, tried.stderr
    again = run("demo", name, "a copy", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "not overwritten" in again.stderr


def test_a_name_that_is_near_is_suggested(tmp_path: Path) -> None:
    for words in (("demo", "strix-hallo"), ("doctor", "--machine", "strix")):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert "Did you mean strix-halo" in done.stderr
    assert "needs a folder" in run("demo", "port", cwd=tmp_path).stderr


def test_a_folder_of_the_name_comes_before_the_example(tmp_path: Path) -> None:
    (tmp_path / "strix-halo").mkdir()
    assert "is not a captured machine" in run("doctor", "--machine", "strix-halo", cwd=tmp_path).stderr
    assert run("machine", "show", "gpu", "--machine", "mi300x", cwd=tmp_path).returncode == 0


def test_bytecode_that_an_installer_wrote_is_no_part_of_a_machine(tmp_path: Path) -> None:
    from rocmend.machine.captured import CapturedRoot

    for path in ("root/opt/__pycache__/version.cpython-312.pyc", "machine.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text('{"captured_at": "2026-01-01T00:00:00+00:00", "name": "x"}')
    assert CapturedRoot(tmp_path).list_dir("/opt") == []


def test_nothing_tells_a_user_of_a_folder_that_is_not_installed() -> None:
    told = {path: str(importlib.import_module(module).command.examples) for path, module in command_modules().items()}
    pages = [TOP / "README.md", *(TOP / "docs").glob("*/*.md")]
    told |= {page.name: page.read_text() for page in pages}
    assert not [name for name, text in told.items() if re.search(r"(?<!rocmend/)\bexamples/(machines|cuda|exp)", text)]
