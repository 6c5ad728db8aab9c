"""``check PROJECT``: a port of a copy, proven."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .port_project import Rocmend, bytes_of


def test_a_check_ports_and_proves_a_copy(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    before = bytes_of(project)
    report = tmp_path / "report.html"
    done = rocmend("check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report)
    assert done.code == 1
    assert "Port of" in done.out
    assert bytes_of(project) == before
    text = report.read_text()
    for part in ("How far the port was proven", "The port as a patch", "max-autotune"):
        assert part in text
    (head,) = [line for line in text.splitlines() if '<p class="summary' in line]
    assert f"Port of {project}: " in head


@pytest.mark.slow
def test_a_check_of_an_applied_port_says_what_its_verification_says(
    rocmend: Rocmend, project: Path, tmp_path: Path
) -> None:
    (project / "kernel.cu").unlink()
    arguments = ("check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", tmp_path / "report.html")
    before = rocmend(*arguments)
    assert "Proven in a copy up to level 2" in " ".join(before.out.split())
    report = (tmp_path / "report.html").read_text()
    assert "--apply\nrocmend port verify" in report, "nothing can be verified before"
    assert "--level emulated" not in report, "nothing here runs it"
    assert rocmend("port", project, "--apply").code in {0, 1}
    verified = rocmend("port", "verify", project, "--target", "gfx1151")
    assert "Proven up to level 2" in verified.out
    after = rocmend(*arguments)
    assert "Proven in a copy up to level 2" in " ".join(after.out.split())
    assert "identity (not run)" not in after.out


@pytest.mark.slow
def test_a_check_copies_what_can_be_copied(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").unlink()
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to(".")
    (project / "gone.cu").symlink_to("nowhere")
    report = tmp_path / "report.html"
    done = rocmend("check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report)
    assert done.code == 1
    assert "Proven in a copy up to level 1" in " ".join(done.out.split())


@pytest.mark.slow
def test_a_check_has_the_project_in_its_sarif(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").unlink()
    report = tmp_path / "report.html"
    done = rocmend(
        "check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report, "--format", "sarif"
    )
    machine, port = json.loads(done.out)["runs"]
    assert {result["ruleId"] for result in port["results"]} == {"PY02"}
    assert machine["automationDetails"] != port["automationDetails"]
    assert "PY02" not in {result["ruleId"] for result in machine["results"]}
