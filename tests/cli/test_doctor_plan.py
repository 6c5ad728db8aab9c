"""The plan as people meet it: the right step, once, in an order that works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

Run = Callable[..., Any]
FEDORA = 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=43\n'
HALF_PAGES = 129741072 // 2 // 4


def plan(done: Any) -> Any:
    return msgspec.json.decode(done.out)["data"]["plan"]


def titles(steps: list[Any]) -> list[str]:
    return [step["title"] for step in steps]


@pytest.fixture(scope="module")
def half_of_memory(tmp_path_factory: pytest.TempPathFactory, machines: Path) -> str:
    """A Strix Halo under Fedora of which nobody changed the limit of shared memory."""
    made = tmp_path_factory.mktemp("half") / "laptop"
    shutil.copytree(machines / "strix-halo-healthy", made, copy_function=shutil.copyfile)
    line = made / "root/proc/cmdline"
    line.write_text(line.read_text().partition(" ttm.")[0] + "\n")
    (made / "root/etc/os-release").write_text(FEDORA)
    for name in ("pages_limit", "page_pool_size"):
        (made / "root/sys/module/ttm/parameters" / name).write_text(f"{HALF_PAGES}\n")
    (gtt,) = (made / "root/sys/devices").rglob("mem_info_gtt_total")
    gtt.write_text(f"{HALF_PAGES * 4096}\n")
    return str(made)


def test_half_of_the_memory_is_an_optional_step_away(installed: Run, half_of_memory: str) -> None:
    done = installed("doctor", "--machine", half_of_memory, "--json")
    assert done.code == 0
    assert "steps" not in plan(done)
    (step,) = [one for one in plan(done)["optional"] if "memory-half-of-ram-visible" in one.get("settles", ())]
    assert step["title"] == "Let the GPU use more of the memory (111 GiB of 124 GiB)"
    pages = (129741072 * 1024 * 9 // 10) // 4096
    (command,) = step["commands"]
    assert command.startswith("sudo grubby --update-kernel=ALL --args=")
    assert f"ttm.pages_limit={pages}" in command.replace(f"={pages + 1}", f"={pages}")
    assert step["check"]
    assert "--remove-args" in step["undo"]
    assert "reboot" in step["needs"]
    page = installed("doctor", "--machine", half_of_memory).out
    assert "up to 111 GiB with a higher limit" in " ".join(page.split())
    assert "What to do" in installed("kb", "show", "memory-half-of-ram-visible").out


@pytest.mark.parametrize("name", ["strix-halo-healthy", "rx-7900-xtx-ryzen", "mi300x"])
def test_who_set_the_limit_or_has_a_card_is_not_told_so(installed: Run, name: str) -> None:
    page = installed("doctor", "--machine", name).out
    assert "Let the GPU use more of the memory" not in page
    assert "with a higher limit" not in page


def test_where_a_higher_limit_holds_the_model_that_is_the_step(installed: Run, half_of_memory: str) -> None:
    for machine, action in (
        (half_of_memory, "set-kernel-parameter:ttm.pages_limit="),
        ("strix-halo", "edit-kernel-command-line"),
    ):
        steps = plan(installed("doctor", "--machine", machine, "--model-size", "80GiB", "--json"))["steps"]
        (step,) = [one for one in steps if "memory-model-does-not-fit" in one.get("settles", ())]
        assert step["action"].startswith(action)
        assert "Use a smaller model, quantisation or context" in titles(step["alternatives"])
        assert "Use a smaller model, quantisation or context" not in titles(steps)
    steps = plan(installed("doctor", "--machine", half_of_memory, "--model-size", "200GiB", "--json"))["steps"]
    (step,) = [one for one in steps if "memory-model-does-not-fit" in one.get("settles", ())]
    assert step["action"] == "use-smaller-model"
    assert "alternatives" not in step


def test_rocm_is_installed_once_and_a_convolution_tested_after_the_reboot(installed: Run) -> None:
    made = plan(installed("doctor", "--machine", "strix-halo", "--json"))
    actions = [step["action"] for step in made["steps"]]
    assert sum("-m pip install" in line for step in made["steps"] for line in step.get("commands", ())) == 1
    (rocm,) = [step for step in made["optional"] if step["action"] == "update-rocm"]
    assert rocm["text"].startswith("Only to compile")
    torch, test = actions.index("install-native-torch"), actions.index("test-convolution")
    assert "gfx1151-cwsr-save-area-too-small" in made["steps"][torch]["settles"]
    assert torch < actions.index("unset-variable:HSA_OVERRIDE_GFX_VERSION") < actions.index("reboot") < test
    assert "Test a convolution first" not in str(made)
    script = installed("doctor", "--machine", "strix-halo", "--plan", "sh").out
    assert f"do_{test + 1}() {{\n    rocmend probe --select conv2d-forward --python" in script
    compiled = plan(installed("doctor", "--machine", "strix-halo", "--for", "llama.cpp", "--json"))["steps"]
    assert "update-rocm" in [step["action"] for step in compiled]
    assert "test-convolution" not in [step["action"] for step in compiled]


def test_the_kernels_save_area_is_checked_by_the_script(installed: Run) -> None:
    steps = plan(installed("doctor", "--machine", "strix-halo", "--json"))["steps"]
    (kernel,) = [step for step in steps if step["action"] == "boot-newer-kernel"]
    assert "exit got < 19185664" in kernel["check"]
    assert kernel["expect"] == "`cwsr_size 19185664`"


def test_fedora_reads_of_its_own_kernels_and_firmware(installed: Run, machines: Path, tmp_path: Path) -> None:
    shutil.copytree(machines / "strix-halo", tmp_path / "m", copy_function=shutil.copyfile)
    (tmp_path / "m/root/etc/os-release").write_text(FEDORA)
    done = installed("doctor", "--machine", str(tmp_path / "m"), "--json")
    steps = {step["action"]: step for step in plan(done)["steps"]}
    assert "Ubuntu" not in str(list(steps.values()))
    assert "OEM" not in str(list(steps.values()))
    assert "dnf upgrade --refresh amd-gpu-firmware" in steps["update-gpu-firmware"]["commands"][0]


def test_the_copy_engine_stays_off_until_rocm_is_new_enough(installed: Run, machines: Path, tmp_path: Path) -> None:
    told = "until ROCm 7.2 or later is installed"
    lines = installed("env", "--for", "pytorch", "--machine", "strix-halo").out.replace("#", "")
    assert told in " ".join(lines.split())
    (unset,) = [
        step
        for step in plan(installed("doctor", "--machine", "strix-halo", "--json"))["optional"]
        if step["action"] == "unset-variable:HSA_ENABLE_SDMA"
    ]
    assert "Once ROCm 7.2 or later is installed" in unset["text"]
    shutil.copytree(machines / "strix-halo", tmp_path / "m", copy_function=shutil.copyfile)
    variables = tmp_path / "m/environ.json"
    variables.write_text(variables.read_text().replace('  "HSA_ENABLE_SDMA": "0",\n', ""))
    done = installed("doctor", "--machine", str(tmp_path / "m"), "--for", "pytorch", "--json")
    (torch,) = [step for step in plan(done)["steps"] if step["action"] == "install-native-torch"]
    (other,) = [one for one in torch["alternatives"] if one["action"] == "set-variable:HSA_ENABLE_SDMA=0"]
    assert other["interim"]
    assert told in other["text"].replace("Until", "until")


def test_a_program_by_name_is_told_its_workload(installed: Run) -> None:
    done = installed("env", "--for", "comfyui")
    assert done.code == 2
    assert "For comfyui, use pytorch." in " ".join(done.err.split())


def test_a_search_says_a_status_in_words(installed: Run) -> None:
    found = " ".join(installed("kb", "search", "HSA_ENABLE_SDMA checkerboard").out.split())
    assert "ACTIVE" not in found
    assert "in this set-up (disputed: sources contradict each other)" in found


def test_of_rdna1_doctor_and_lab_say_the_same(installed: Run, machines: Path) -> None:
    """A hang is predicted with MIOpen off, so switching it off is no way until there is native code."""
    page = " ".join(installed("doctor", "--machine", "rx-5600-xt").out.split())
    assert "Until then: Run convolutions on the CPU" in page
    assert "Until then: Turn MIOpen off" not in page
    experiment = machines.parent / "experiments" / "rdna1-conv2d.toml"
    trials = installed("lab", "plan", str(experiment), "--json").out
    assert "rdna1-conv2d-hangs" in trials
