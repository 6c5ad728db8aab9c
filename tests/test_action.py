"""The GitHub Action: its steps run as a runner would run them, with the program of this environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
KERNEL = "#include <cuda_runtime.h>\n__global__ void k(int *x) { x[0] = __ballot_sync(~0u, x[1]); }\n"


class Ran(NamedTuple):
    """How the action ended: its outputs, the exit code of the step that failed (0: none), and the log."""

    outputs: dict[str, str]
    code: int
    log: str


def filled(text: str, inputs: dict[str, str], outputs: dict[str, str], folder: Path) -> str:
    """Return a value with its expressions in place."""
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known |= {f"steps.run.outputs.{name}": value for name, value in outputs.items()}
    known |= {"github.action_path": str(folder)}
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda match: known[match[1]], text)


@pytest.fixture
def act(tmp_path: Path) -> Callable[..., Ran]:
    """Return what runs the action's shell steps in a checkout, but for the installation."""
    binaries = tmp_path / "temp" / "rocmend" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    program = binaries / "rocmend"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rocmend "$@"\n')
    program.chmod(0o755)
    checkout = tmp_path / "checkout"
    (checkout / "my project").mkdir(parents=True)
    (checkout / "my project" / "kernel.cu").write_text(KERNEL)

    def run(**given: str) -> Ran:
        inputs = {name: one["default"] for name, one in ACTION["inputs"].items()}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        outputs: dict[str, str] = {}
        log = ""
        for step in ACTION["runs"]["steps"][1:]:
            if "run" not in step:
                continue
            env = {name: filled(value, inputs, outputs, ROOT) for name, value in step["env"].items()}
            files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            env |= {name: str(path) for name, path in files.items()} | {"RUNNER_TEMP": str(tmp_path / "temp")}
            env |= {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
            env |= {"HOME": str(tmp_path), "ROCMEND_CACHE_HOME": str(tmp_path / "cache")}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=checkout,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            log += done.stdout + done.stderr
            if files["GITHUB_OUTPUT"].exists():
                outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
            if done.returncode:
                return Ran(outputs, done.returncode, log)
        return Ran(outputs, 0, log)

    return run


def sarif_of(ran: Ran) -> Any:
    return json.loads(Path(ran.outputs["sarif"]).read_text())


def test_a_project_with_findings_fails_with_paths_of_the_repository(act: Callable[..., Ran]) -> None:
    ran = act(path="my project")
    assert (ran.code, ran.outputs["exit-code"], ran.outputs["findings"]) == (1, "1", "2")
    results = sarif_of(ran)["runs"][0]["results"]
    uris = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results}
    assert uris == {"my%20project/kernel.cu"}
    assert "kernel.cu:2: CU04" in ran.log


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"fail_on": "never"}, 0),
        ({"fail_on": "error"}, 1),
        ({"fail_on": "error", "args": "--ignore CU"}, 0),
        ({"args": "--ignore CU"}, 0),
        ({"args": "--format json"}, 1),
        ({"fail_on": "often"}, 2),
        ({"command": "rm"}, 2),
        ({"path": "no such"}, 2),
    ],
)
def test_what_fails_is_chosen(act: Callable[..., Ran], given: dict[str, str], code: int) -> None:
    ran = act(**{"path": "my project", **given})
    assert ran.code == code, ran.log
    assert code != 2 or "::error::" in ran.log


def obeyed(log: str) -> list[str]:
    """Return the lines that the runner would take for commands."""
    found: list[str] = []
    token = ""
    for line in log.splitlines():
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.startswith("::"):
            found.append(line)
    assert not token
    return found


def test_a_project_cannot_give_the_runner_commands_or_the_program_options(
    act: Callable[..., Ran], tmp_path: Path
) -> None:
    project = tmp_path / "checkout" / "--help"
    project.mkdir()
    (project / "x\n::set-env name=A::b\n.cu").write_text(KERNEL)
    ran = act(path="--help")
    assert (ran.code, ran.outputs["findings"]) == (1, "2"), ran.log
    assert obeyed(ran.log) == []
    missing = act(path="no\n::add-mask::x")
    assert missing.code == 2
    assert "add-mask" in missing.log
    assert obeyed(missing.log) == ["::error::rocmend port failed with exit code 2; the log says why."]
    named = act(path="--help", command="rm\n::add-mask::x")
    assert obeyed(named.log) == ["::error::command is port, doctor or check."]


def test_doctor_answers_for_a_gpu_that_is_not_there(act: Callable[..., Ran]) -> None:
    ran = act(command="doctor", target="gfx1151", fail_on="never")
    assert ran.code == 0, ran.log
    assert sarif_of(ran)["version"] == "2.1.0"


def test_the_documented_workflow_uses_what_the_action_has() -> None:
    page = (ROOT / "docs" / "how-to" / "use-in-scripts-and-ci.md").read_text()
    workflow = yaml.safe_load(re.findall(r"```yaml\n(name: ROCm.*?)```", page, re.DOTALL)[0])
    steps = workflow["jobs"]["port"]["steps"]
    (ours,) = [one for one in steps if one.get("uses", "").partition("@")[0].endswith("/rocmend")]
    assert ours["with"].keys() <= ACTION["inputs"].keys()
    used = set(re.findall(r"steps\.rocmend\.outputs\.([\w-]+)", page))
    assert used <= ACTION["outputs"].keys()


def test_the_hook_names_a_command_and_types_that_exist() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    done = subprocess.run([sys.executable, "-m", *hook["entry"].split(), "--help"], capture_output=True, check=False)
    assert (done.returncode, hook["language"]) == (0, "python")
