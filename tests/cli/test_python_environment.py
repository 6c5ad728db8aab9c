"""One Python environment a report, through the installed command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest


def run(*words: str | Path, cwd: Path, path: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "CONDA_PREFIX"}}
    where = kept | {"PATH": path or str(cwd / "nothing"), "ROCMEND_HOME": str(cwd / "home"), **env}
    command = [sys.executable, "-m", "rocmend", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=where)


def python_of(*words: str | Path, cwd: Path, **more: str) -> dict[str, Any]:
    done = run("doctor", *words, "--json", cwd=cwd, **more)
    found: dict[str, Any] = msgspec.json.decode(done.stdout)["data"]["python"]
    return found


def environment(at: Path, *, torch: bool = False) -> Path:
    """Make what looks like a virtual environment; its interpreter leaves a mark where it is run."""
    (at / "bin").mkdir(parents=True)
    (at / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.3\n")
    (at / "bin" / "python3").write_text(f'#!/bin/sh\ntouch {at}/was-run\nexec {sys.executable} "$@"\n')
    (at / "bin" / "python3").chmod(0o755)
    site = at / "lib" / "python3.12" / "site-packages"
    (site / "torch").mkdir(parents=True)
    if torch:
        (site / "torch" / "version.py").write_text("__version__ = '2.9.1+rocm6.4'\nhip = '6.4.4'\n")
    return at


@pytest.mark.slow
def test_the_order(tmp_path: Path) -> None:
    asked, active, folder = (environment(tmp_path / name, torch=True) for name in ("asked", "active", ".venv"))
    bare = environment(tmp_path / "bare")
    first = python_of("--python", asked, cwd=tmp_path, VIRTUAL_ENV=str(active))
    assert (first["prefix"], first["found_by"]) == (str(asked), "--python")
    by_interpreter = python_of("--python", asked / "bin" / "python3", cwd=tmp_path)
    assert by_interpreter == first
    second = python_of(cwd=tmp_path, VIRTUAL_ENV=str(active))
    assert (second["prefix"], second["found_by"]) == (str(active), "VIRTUAL_ENV")
    third = python_of(cwd=tmp_path, path=str(active / "bin"))
    assert (third["prefix"], third["found_by"]) == (str(active), "python3 on PATH")
    fourth = python_of(cwd=tmp_path, path=str(bare / "bin"))  # on PATH, and without PyTorch
    assert (fourth["prefix"], fourth["found_by"]) == (str(folder), ".venv of this folder")


def test_every_section_of_a_check_uses_it_and_says_why(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    chosen = tmp_path / "chosen"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", chosen], check=True)
    done = run("check", "--python", chosen, "-o", tmp_path / "r.html", "--json", "--no-redact", cwd=tmp_path)
    data = msgspec.json.decode(done.stdout)["data"]
    assert data["facts"]["python.prefix"]["value"] == str(chosen)
    assert data["diagnosis"]["python"]["prefix"] == str(chosen)
    used = data["probes"]["subject"]["python"] if data["probes"] else data["not_probed"]
    assert str(chosen) in used
    assert "(--python)" in (tmp_path / "r.html").read_text()


def test_an_environment_of_the_working_folder_is_read_and_not_run(tmp_path: Path) -> None:
    folder = environment(tmp_path / ".venv", torch=True)
    checked = run("check", "-o", tmp_path / "r.html", "--json", "--no-redact", cwd=tmp_path)
    data = msgspec.json.decode(checked.stdout)["data"]
    assert data["facts"]["torch.version"]["value"] == "2.9.1+rocm6.4"
    assert data["not_probed"].startswith(f"Not tried with {folder}: ")
    probed = run("probe", "--select", "smoke", cwd=tmp_path)
    assert probed.returncode == 2
    assert "--python" in probed.stderr
    assert not (folder / "was-run").exists()


def test_a_capture_replays_the_environment_that_was_chosen(tmp_path: Path) -> None:
    asked = environment(tmp_path / "asked", torch=True)
    done = run("machine", "capture", "kept", "--python", asked, "--json", cwd=tmp_path)
    envelope = msgspec.json.decode(done.stdout)
    assert (done.returncode, envelope["status"], envelope["data"]["directory"]) == (0, "clean", str(tmp_path / "kept"))
    shown = msgspec.json.decode(run("machine", "show", "torch", "--machine", "kept", "--json", cwd=tmp_path).stdout)
    assert shown["data"]["facts"]["torch.version"]["value"] == "2.9.1+rocm6.4"
    assert python_of("--machine", "kept", cwd=tmp_path)["found_by"] == "--python"
    refused = run("doctor", "--machine", "kept", "--python", asked, cwd=tmp_path)
    assert refused.returncode == 2
    assert "captured machine has the one" in refused.stderr


def test_what_is_no_environment_is_refused(tmp_path: Path) -> None:
    for given in ("nothing/bin/python", str(tmp_path)):
        done = run("doctor", "--python", given, cwd=tmp_path)
        assert done.returncode == 2
        assert "no Python interpreter" in done.stderr
