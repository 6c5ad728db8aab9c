"""The plan's install commands: for every card, into the Python that was examined, and nothing lost on the way."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.cli.plan import explained_with_installs, with_installs
from rocmend.core.records import Fact
from rocmend.doctor.diagnose import diagnose
from rocmend.doctor.explain import explain
from rocmend.doctor.records import Step
from rocmend.kb.load import Knowledge, load_entries
from rocmend.machine.collect import open_machine, snapshot
from rocmend.machine.facts import Machine
from rocmend.machine.software.python_env import IN_FOLDER
from rocmend.setup.choose import Choice

MACHINES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"
KNOWLEDGE = cache(load_entries)


@cache
def example(name: str) -> Machine:
    return snapshot(open_machine(MACHINES / name), name=name)


def steps(name: str, **facts: Any) -> dict[str, Step]:
    machine = example(name)
    changed = {key.replace("__", "."): value for key, value in facts.items()}
    machine = msgspec.structs.replace(
        machine, facts=machine.facts | {key: Fact(key, value, "test") for key, value in changed.items()}
    )
    knowledge: Knowledge = KNOWLEDGE()
    plan = with_installs(diagnose(machine, knowledge), machine, knowledge).plan
    return {step.action: step for step in (*plan.steps, *plan.optional)}


@pytest.mark.parametrize("name", ["strix-halo", "rx-5600-xt", "cuda-torch-on-amd"])
def test_torch_is_replaced_in_one_command_in_the_environment_that_was_examined(name: str) -> None:
    """A download that fails leaves the old torch, and another Python on PATH is not touched."""
    (command,) = steps(name)["install-native-torch"].commands
    python = example(name).value("python.executable")
    assert command.startswith(f"{python} -m pip install --force-reinstall ")
    assert "uninstall" not in command


def test_both_cards_get_device_code() -> None:
    more = {"gpu__1__gfx_target": "gfx1031", "gpu__1__is_apu": False, "gpu__1__torch_service": "none"}
    (command,) = steps("cuda-torch-on-amd", **more)["install-native-torch"].commands
    assert '"torch[device-gfx1100,device-gfx1031]"' in command
    more["gpu__1__gfx_target"], more["gpu__1__is_apu"] = "gfx1036", True
    (command,) = steps("cuda-torch-on-amd", **more)["install-native-torch"].commands
    assert '"torch[device-gfx1100]"' in command


def test_a_python_of_the_distribution_is_left_alone() -> None:
    found = steps("cuda-torch-on-amd", python__externally_managed=True, python__executable="/usr/bin/python3")
    venv, command = found["install-native-torch"].commands
    assert venv == "python3 -m venv ~/rocm-venv"
    assert command.startswith("~/rocm-venv/bin/python -m pip install ")
    assert "belongs to the distribution" in found["install-native-torch"].text
    assert not any("/usr/bin/python3 -m pip" in line for step in found.values() for line in step.commands)


def test_a_rocm_from_pip_is_undone_with_pip() -> None:
    """With all that it pulled in: the names are those of an environment that has such a ROCm."""
    step = steps("strix-halo")["update-rocm"]
    assert step.commands[0].startswith("/home/user/venv/bin/python3 -m pip install ")
    undo = "`/home/user/venv/bin/python3 -m pip uninstall -y "
    assert step.undo.startswith(undo)
    removed = step.undo.removeprefix(undo).partition("`")[0].split()
    present = [name for name in example("strix-halo-healthy").value("packages") if name.startswith("rocm")]
    assert len(present) > 2
    assert set(present) <= set(removed)
    assert "PyTorch from the same index uses" in step.undo
    assert "ROCM_PATH" not in step.undo


@pytest.mark.parametrize(
    ("version", "passes"), [("6.4.4", 1), ("7.1.1", 1), ("7.2", 0), ("7.14.0", 0), ("10.0.0rc1", 0)]
)
def test_the_check_of_a_new_rocm_asks_for_the_version_that_the_step_names(
    version: str, passes: int, tmp_path: Path
) -> None:
    step = steps("strix-halo")["update-rocm"]
    assert "7.2 or later" in step.text
    assert step.expect == "already satisfied, with 7.2 or later"
    assert len(step.check) < 80
    info = tmp_path / "rocm-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: rocm\nVersion: {version}\n")
    check = step.check.replace("/home/user/venv/bin/python3", sys.executable)
    done = subprocess.run(
        ["sh", "-c", check], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert (f"({version})" in done.stdout, done.returncode) == (not passes, passes), done.stderr


def test_an_explanation_undoes_and_checks_as_the_plan_does() -> None:
    machine, knowledge = example("strix-halo"), KNOWLEDGE()
    explanation = explain("gfx1151-cwsr-save-area-too-small", knowledge, machine)
    (remedy,) = [
        one
        for one in explained_with_installs(explanation, machine, knowledge).entry.remedy
        if one.action == "update-rocm"
    ]
    step = steps("strix-halo")["update-rocm"]
    assert (remedy.commands, remedy.check, remedy.expect, remedy.undo) == (
        step.commands,
        step.check,
        step.expect,
        step.undo,
    )


def test_no_check_runs_a_python_that_nobody_named() -> None:
    """The script of a plan runs checks before it asks; the .venv of a folder may be a stranger's."""
    facts = {"onnxruntime__providers": ["CPUExecutionProvider"], "packages": {"jax-cuda12-plugin": "0.5", "jax": "0.5"}}
    named = steps("strix-halo", **facts).values()
    found = steps("strix-halo", python__found_by=IN_FOLDER, **facts).values()
    assert any("/venv/bin/python3" in step.check for step in named)
    assert not any("/venv/bin/python3" in step.check for step in found)
    assert any("/venv/bin/python3" in step.expect for step in found)


def test_an_installation_by_the_package_manager_needs_root_and_is_undone_there(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Choice("sudo apt install rocm", "rocm", "stable", True, "", "an-entry", "active", 1)
    monkeypatch.setattr("rocmend.cli.plan.for_all", lambda *_: choice)
    step = steps("strix-halo")["update-rocm"]
    assert step.commands == ("sudo apt install rocm",)
    assert "root" in step.needs
    assert "pip" not in step.undo + step.check
    assert "package manager" in step.undo


def run(step: Step, folder: Path, frozen: str) -> subprocess.CompletedProcess[str]:
    """Run a step's command with a Python whose ``pip freeze`` is given, and which writes down what else it is told."""
    python = folder / "python"
    python.write_text(f'#!/bin/sh\n[ "$3" = freeze ] && printf "{frozen}" || echo "$@" >>{folder}/told\n')
    python.chmod(0o755)
    command = step.commands[0].replace("/home/user/venv/bin/python3", str(python))
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)


def test_the_projects_own_constraints_are_not_overwritten(tmp_path: Path) -> None:
    step = steps("cuda-torch-on-amd")["protect-torch-from-pip"]
    (tmp_path / "constraints.txt").write_text("numpy<2\n")
    assert run(step, tmp_path, "numpy==1\\ntorch==2.9\\n").returncode == 0
    assert (tmp_path / "constraints.txt").read_text() == "numpy<2\n"
    assert (tmp_path / "rocm-constraints.txt").read_text() == "torch==2.9\n"
    assert run(step, tmp_path, "torch==3\\n").returncode != 0
    assert (tmp_path / "rocm-constraints.txt").read_text() == "torch==2.9\n"
    assert step.undo == "`rm rocm-constraints.txt`"


def test_what_the_cuda_torch_brought_is_removed_and_only_torch_is_pinned(tmp_path: Path) -> None:
    found = steps("cuda-torch-on-amd")
    assert list(found)[:2] == ["remove-cuda-leftovers", "install-native-torch"]
    names = ("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-ml-py", "pytorch-triton-rocm", "triton", "tritonclient")
    run(found["remove-cuda-leftovers"], tmp_path, "".join(f"{name}==1\\n" for name in names))
    told = (tmp_path / "told").read_text().split()
    assert told[-4:] == ["nvidia-cublas-cu12", "nvidia-cudnn-cu12", "pytorch-triton-rocm", "triton"]
    assert told[:-4] == ["-m", "pip", "uninstall", "-y"]
    frozen = "torch==2\\ntorchmetrics==1\\ntorchvision @ file:///x\\ntriton==3\\n"
    run(found["protect-torch-from-pip"], tmp_path, frozen)
    pinned = (tmp_path / "rocm-constraints.txt").read_text().splitlines()
    assert pinned == ["torch==2", "torchvision @ file:///x", "triton==3"]


def test_the_performance_level_goes_back_to_what_it_was() -> None:
    """Not to auto, where a person had set another; where it is high already there is no such step."""
    wanted = "set-performance-level:0000:c5:00.0=high"
    step = steps("strix-halo", gpu__0__performance_level="manual")[wanted]
    assert step.undo.startswith("`echo manual | sudo tee ")
    assert wanted not in steps("strix-halo", gpu__0__performance_level="high")


def test_only_the_placeholders_are_removed(tmp_path: Path) -> None:
    packages = {"torch": "2.9.1", "amd-torch-device-gfx1100": "0.0.1.dev0", "rocm-sdk-core": "7.14.0"}
    step = steps("cuda-torch-on-amd", packages=packages)["remove-placeholder-packages"]
    frozen = "amd-torch-device-gfx1100==0.0.1.dev0\\nrocm-sdk-core==7.14.0\\nrocm_sdk_device_gfx1100==0.0.1.dev0\\n"
    run(step, tmp_path, frozen)
    told = (tmp_path / "told").read_text()
    assert told == "-m pip uninstall -y amd-torch-device-gfx1100 rocm_sdk_device_gfx1100\n"


def test_no_remedy_acts_on_whatever_python_is_on_path() -> None:
    loose = [
        (entry.id, line)
        for entry in KNOWLEDGE().entries.values()
        if entry.severity is not None
        for remedy in entry.remedy
        for line in (*remedy.commands, remedy.check)
        for word in ("pip ", "python -c", "python -m")
        if line.startswith(word) or f" {word}" in line.replace("{python.executable} -m pip ", "")
    ]
    assert loose == []
