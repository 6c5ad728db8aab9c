"""What commands write for their user, in a folder that a stranger filled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
PLANTED = ("link", "dangling", "pipe")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which we are in."""
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.py").write_text("import torch\n")
    (tmp_path / "gold.txt").write_text("gold")
    monkeypatch.chdir(made)
    return made


def plant(what: str, name: str) -> None:
    if what == "pipe":
        os.mkfifo(name)
    else:
        Path(name).symlink_to("../gold.txt" if what == "link" else "../made.txt")


def untouched(project: Path) -> bool:
    gold = project.parent / "gold.txt"
    return gold.read_text() == "gold" and sorted(path.name for path in project.parent.iterdir()) == [
        "gold.txt",
        "project",
    ]


@pytest.fixture
def check(rocmend: Run, machines: Path) -> Run:
    return lambda *more: rocmend("check", "--machine", machines / "strix-halo", "--no-store", *more)


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rocmend-report.html", ("check", ".", "--no-store", "--no-probe")),
        ("report.html", ("check", ".", "--no-store", "--no-probe", "-o", "report.html")),
        ("report.html", ("probe", "-o", "report.html", "--no-store")),
        ("install.sh", ("port", "audit", ".", "--script", "install.sh")),
        ("known.json", ("port", ".", "--write-baseline", "known.json")),
        ("table.json", ("kernels", "compile", "--write", "table.json")),
        ("runs.json", ("kernels", "check", "--record", "runs.json", "--no-store")),
    ],
)
def test_no_command_writes_through_what_is_planted(  # noqa: PLR0917  the cases of a table
    rocmend: Run, project: Path, what: str, name: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if command[:2] == ("kernels", "check"):
        pytest.importorskip("torch")
    plant(what, name)
    for work in ("cli.commands.check.take_snapshot", "cli.porting.analyse", "kernels.compiled.run.compile_ops"):
        monkeypatch.setattr(f"rocmend.{work}", lambda *_, **__: pytest.fail("the work had begun"))
    done = rocmend(*command)
    assert (done.code, done.out) == (2, "")
    assert name in done.err
    assert untouched(project)


def test_the_default_name_replaces_a_report_only(check: Run, project: Path) -> None:
    report = project / "rocmend-report-strix-halo.html"
    assert check().code == 1
    first = report.stat().st_ino
    assert check().code == 1
    assert report.stat().st_ino != first
    report.write_text("<html>mine</html>")
    done = check()
    assert done.code == 2
    assert "Name another with -o" in done.err
    assert report.read_text() == "<html>mine</html>"
    assert check("-o", report).code == 1
    assert report.read_text().startswith("<!doctype html>")


def test_a_folder_that_is_not_there_is_not_made(check: Run, project: Path) -> None:
    done = check("-o", project / "none" / "report.html")
    assert done.code == 2
    assert "does not exist" in done.err
    assert not (project / "none").exists()


@pytest.mark.slow
@pytest.mark.parametrize("to", ["/dev/stdout", "/dev/null", "/dev/fd/1"])
def test_streams_that_are_named_are_written_to(machines: Path, project: Path, to: str) -> None:
    command = [sys.executable, "-m", "rocmend", "check", "--machine", str(machines / "strix-halo"), "-o", to]
    home = {**os.environ, "ROCMEND_HOME": str(project / "home")}
    for kept in ([], ["--no-store"]):
        with (project / "out").open("wb") as out:
            done = subprocess.run(
                [*command, *kept], stdout=out, stderr=subprocess.PIPE, env=home, timeout=60, check=False
            )
        assert done.returncode == 1, done.stderr
        said = (project / "out").read_text()
        assert said.startswith("<!doctype html>") == (to != "/dev/null")
        assert f"Report: {to}" in said


def test_a_report_goes_through_a_pipe_of_the_shell(machines: Path, project: Path) -> None:
    command = [sys.executable, "-m", "rocmend", "check", "--machine", str(machines / "strix-halo"), "-o", "/dev/stdout"]
    home = {**os.environ, "ROCMEND_HOME": str(project / "home")}
    done = subprocess.run(command, capture_output=True, text=True, env=home, timeout=60, check=False)
    assert (done.returncode, done.stdout.startswith("<!doctype html>")) == (1, True), done.stderr


def test_a_capture_replaces_no_folder_of_others(rocmend: Run, project: Path) -> None:
    (project / "machine.json").write_text('{"captured_at": "", "name": "x"}')
    for more in ((), ("--force",)):
        done = rocmend("machine", "capture", project, *more)
        assert done.code == 2
        assert "is not overwritten" in done.err
    assert (project / "a.py").exists()


def test_one_file_of_no_known_kind_is_an_error(rocmend: Run) -> None:
    done = rocmend("port", "/etc/passwd")
    assert done.code == 2
    assert "is not a file that a port reads" in done.err


@pytest.mark.parametrize("number", ["nan", "inf", "1e300"])
@pytest.mark.parametrize("name", ["total_s", "silence_s", "grace_s"])
def test_an_experiment_s_limits_are_finite(rocmend: Run, tmp_path: Path, name: str, number: str) -> None:
    example = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "experiments" / "local-demo.toml"
    lines = [line for line in example.read_text().splitlines() if not line.startswith(f"{name} =")]
    assert "[limits]" in lines
    lines.insert(lines.index("[limits]") + 1, f"{name} = {number}")
    (tmp_path / "it.toml").write_text("\n".join(lines))
    done = rocmend("lab", "plan", tmp_path / "it.toml")
    assert done.code == 2
    assert "at most a year" in done.err
