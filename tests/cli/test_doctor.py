from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

Run = Callable[..., Any]


def test_findings_come_most_severe_first_with_evidence_remedy_and_source(rocmend: Run, machines: Path) -> None:
    done = rocmend("doctor", "--machine", machines / "strix-halo")
    assert done.code == 1
    lines = done.out.splitlines()
    ranks = {"ERROR": 0, "WARNING": 1, "ADVICE": 2, "INFO": 3}
    seen = [ranks[line.split(" ")[0].rstrip(",")] for line in lines if line.split(" ")[0].rstrip(",") in ranks]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2, 3}
    assert len(lines) <= 130
    assert "→ steps 2 and 6 (gfx1151-cwsr-save-area-too-small)" in " ".join(done.out.split())
    verbose = rocmend("doctor", "-v", "--machine", machines / "strix-halo").out
    lines = verbose.splitlines()
    end = lines.index("  id: gfx1151-cwsr-save-area-too-small")
    start = max(number for number in range(end) if lines[number].startswith("ERROR "))
    card = "\n".join(lines[start:end])
    assert "To do: steps 2 and 6." in card
    assert "13,942,784 bytes (13.3 MiB)" in " ".join(card.split())
    assert "read from /sys/class/kfd" in verbose
    assert "Sources: " in verbose


def test_what_could_not_be_decided_is_said_in_words_and_keys_come_with_v(rocmend: Run, machines: Path) -> None:
    asked = ("doctor", "--machine", machines / "cuda-torch-on-amd")
    short = rocmend(*asked).out.partition("Could not be decided")[2]
    assert "open: the kernel log cannot be read without root\n" in short
    assert "dmesg." not in short
    assert "not-found" not in short
    assert "dmesg.gpu_hang" in rocmend(*asked, "-v").out


def test_prose_fits_80_columns(rocmend: Run, machines: Path) -> None:
    """Only what must stay whole may be longer: a command (indented) or an address."""
    for line in rocmend("doctor", "-v", "--machine", machines / "strix-halo").out.splitlines():
        assert len(line) <= 80 or line.startswith("    "), line


def test_a_card_beside_processor_graphics_keeps_its_torch(rocmend: Run, machines: Path) -> None:
    """What torch lacks for the graphics of a Ryzen is no reason to replace the build that serves the card."""
    done = rocmend("doctor", "-v", "--machine", machines / "rx-7900-xtx-ryzen")
    assert done.code == 0
    assert "uninstall" not in done.out
    assert "HSA_OVERRIDE_GFX_VERSION=" not in done.out
    assert "export ROCR_VISIBLE_DEVICES=0" in done.out.partition("Optional")[2]


@pytest.mark.parametrize(
    ("system", "told", "never"),
    [
        ("ID=nixos", "boot.kernelParams", ("update-grub", "apt ", "grubby")),
        (
            'ID=opensuse-tumbleweed\nID_LIKE="opensuse suse"',
            "grub2-mkconfig -o /boot/grub2/grub.cfg",
            ("update-grub", "apt "),
        ),
        ("ID=bazzite\nID_LIKE=fedora", "rpm-ostree kargs", ("grubby", "dnf ", "update-grub")),
    ],
)
def test_the_plan_has_the_commands_of_the_machines_own_system(  # noqa: PLR0917  fixtures and a case
    rocmend: Run, machines: Path, tmp_path: Path, system: str, told: str, never: tuple[str, ...]
) -> None:
    shutil.copytree(machines / "strix-halo", tmp_path / "m", copy_function=shutil.copyfile)
    (tmp_path / "m/root/etc/os-release").write_text(f"{system}\n")
    if "bazzite" in system:
        (tmp_path / "m/root/run").mkdir(exist_ok=True)
        (tmp_path / "m/root/run/ostree-booted").touch()
    plan = rocmend("doctor", "--machine", tmp_path / "m").out.partition("What was found")[0]
    assert told in plan
    assert not [word for word in never if word in plan]


def test_what_fixes_a_finding_is_said_in_words(rocmend: Run, machines: Path) -> None:
    for name in ("human", "md", "html"):
        told = rocmend("doctor", "--machine", machines / "strix-halo", "--format", name).out
        assert "Fixed in linux-firmware after 20251125" in " ".join(told.split())
        assert "fixed-in" not in told.lower()


def test_explain_needs_no_machine(rocmend: Run) -> None:
    done = rocmend("doctor", "--explain", "gfx1151-cwsr-save-area-too-small")
    assert done.code == 0
    assert "Recognised by" in done.out
    assert "19185664" in done.out.replace(" ", "").replace(",", "")


def test_a_model_that_does_not_fit_is_said(rocmend: Run, machines: Path) -> None:
    small = rocmend("doctor", "--machine", machines / "rx-5600-xt", "--model-size", "2GiB", "--json")
    large = rocmend("doctor", "--machine", machines / "rx-5600-xt", "--model-size", "60GiB", "--json")

    def ids(done: Any) -> set[str]:
        return {finding["entry_id"] for finding in msgspec.json.decode(done.out)["data"]["findings"]}

    assert ids(large) - ids(small)


def test_the_known_problems_of_a_target_that_is_not_here_are_listed(rocmend: Run) -> None:
    done = rocmend("doctor", "--target", "gfx1151", "--for", "pytorch")
    assert "Known problems of gfx1151, not checked here" in done.out
    assert "gfx1151-cwsr-save-area-too-small" in done.out
    assert "rdna1" not in done.out
    assert "unknown" not in done.out  # titles are in general words where the machine's values are missing


@pytest.mark.slow
def test_formats(rocmend: Run, machines: Path) -> None:
    machine = machines / "strix-halo"
    sarif = msgspec.json.decode(rocmend("doctor", "--machine", machine, "--format", "sarif").out)
    data = msgspec.json.decode(rocmend("doctor", "--machine", machine, "--json").out)["data"]
    lines = rocmend("doctor", "--machine", machine, "--format", "jsonl").out.splitlines()
    markdown = rocmend("doctor", "--machine", machine, "--format", "md").out
    assert len(sarif["runs"][0]["results"]) == len(data["findings"]) == len(lines)
    assert markdown.startswith("# Diagnosis of strix-halo\n")
    assert all(f"(`{finding['entry_id']}`)" in markdown for finding in data["findings"])


def test_the_plan_opens_every_form_of_the_diagnosis(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    machine = machines / "strix-halo"
    page = tmp_path / "report.html"
    short = rocmend("doctor", "--machine", machine).out
    forms = (
        short,
        rocmend("doctor", "-v", "--machine", machine).out,
        rocmend("doctor", "--machine", machine, "--format", "md").out,
        rocmend("check", "--machine", machine, "--no-store", "-o", page).out,
    )
    for text in forms:
        parts = ("Do this, in order", "Save the kernel log", "sudo reboot", "If it still fails, investigate")
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
        assert text.index("pip install --force-reinstall") < text.index("sudo reboot")
        assert text.count("unset HSA_OVERRIDE_GFX_VERSION\n") == 1
    for text in (*forms[:3], page.read_text(encoding="utf-8")):
        assert "Reboot once, for steps 5 to 7; then rocmend doctor checks them" in " ".join(text.split())
    assert len(short.splitlines()) < 120
    assert "-v shows" in short
    assert not any("-v shows" in text or "`-v` shows" in text for text in forms[1:3])
    assert "    Undo: " in forms[1]
    assert "    Undo: " not in short
    other = "Or: Remove AMDVLK (root, low risk). Undo: Install amdvlk again.\n        sudo apt remove amdvlk\n"
    assert other in short
    assert 'id="step-9"' in page.read_text(encoding="utf-8")
    plan = msgspec.json.decode(rocmend("doctor", "--machine", machine, "--json").out)["data"]["plan"]
    assert [step["number"] for step in plan["steps"]] == list(range(1, len(plan["steps"]) + 1))
    by_action = {step["action"]: step for step in plan["steps"]}
    assert by_action["unset-variable:HSA_OVERRIDE_GFX_VERSION"]["after"] == [
        by_action["install-native-torch"]["number"]
    ]
    assert set(plan) <= {"steps", "optional", "investigate", "decide"}


def test_an_entrys_remedies_say_when_each_applies(rocmend: Run) -> None:
    text = " ".join(rocmend("kb", "show", "kernel-unknown-parameter").out.split())
    assert 'Where matches(kernel.unknown_params_text, "cwsr_enable") and gpu.mes_version == 0x83' in text
    assert "Where" not in rocmend("kb", "show", "kernel-unknown-parameter", "--machine", "strix-halo").out


def test_a_killed_process_is_no_matter_where_there_is_no_amd_gpu(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    machine = tmp_path / "no-amd-gpu"
    shutil.copytree(machines / "no-amd-gpu", machine)
    log = "[  812.4] Memory cgroup out of memory: Killed process 4127 (node) total-vm:9000kB, anon-rss:6000kB\n"
    told = {"argv": ["dmesg"], "ending": "exited", "exit_code": 0, "stdout": log, "time_ms": 2}
    (machine / "commands" / "dmesg.json").write_bytes(msgspec.json.encode(told))
    done = rocmend("doctor", "--machine", machine)
    assert "This machine has no AMD GPU. 1 warning" in done.out
    assert "Look into\n- Check the slot" in done.out
    assert "memory-oom-kill" not in done.out
    assert "# Look into:" in rocmend("doctor", "--machine", machine, "--plan", "sh").out
    asked = rocmend("doctor", "--machine", machine, "--for", "llama.cpp", "--model-size", "70B@4bit").out
    assert "This machine has no AMD GPU. 1 warning" in asked
    assert "too little for the model (32.6 GiB); no GPU" in " ".join(asked.split())
    assert "Do this, in order" not in asked


def test_what_uses_no_pytorch_is_told_to_install_none(rocmend: Run) -> None:
    done = rocmend("doctor", "--machine", "strix-halo", "--for", "llama.cpp", "--json")
    steps = {step["action"]: step for step in msgspec.json.decode(done.out)["data"]["plan"]["steps"]}
    assert "install-native-torch" not in steps
    build = steps["install-native-llama-cpp"]
    assert "`rocmend wheel choose llama.cpp`" in build["text"]
    assert build["commands"]
    assert build["number"] in steps["unset-variable:HSA_OVERRIDE_GFX_VERSION"]["after"]
    assert "llama.cpp that has code" not in rocmend("doctor", "--machine", "strix-halo").out


def test_what_only_root_may_read_is_read_by_the_rocmend_that_runs(
    rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "venv" / "rocmend"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    monkeypatch.setattr("sys.argv", [str(own)])
    for module in ("rocmend.cli.plan", "rocmend.doctor.diagnose"):  # as if its facts were this machine's
        monkeypatch.setattr(f"{module}.THIS_MACHINE", "no-driver")
    monkeypatch.setenv("PATH", str(tmp_path))
    data = msgspec.json.decode(rocmend("doctor", "--machine", "no-driver", "--json", "--no-redact").out)["data"]
    ways = [one["command"] for one in data["plan"]["decide"] if one.get("command")]
    assert ways == [f'sudo -E env "PATH=$PATH" {own} doctor']
    monkeypatch.undo()
    text = " ".join(rocmend("doctor", "--machine", "no-driver").out.split())
    assert 'sudo -E env "PATH=$PATH" rocmend machine capture FOLDER' in text


def test_a_user_in_no_group_is_told_so_before_the_driver_runs(rocmend: Run) -> None:
    done = rocmend("doctor", "--machine", "no-driver", "--json")
    steps = msgspec.json.decode(done.out)["data"]["plan"]["steps"]
    assert [step["action"] for step in steps] == ["join-gpu-groups", "allow-amdgpu", "reboot"]


def test_a_newer_kernel_and_rocm_come_with_how_to_get_and_use_them(rocmend: Run) -> None:
    done = rocmend("doctor", "--machine", "strix-halo", "--json")
    plan = msgspec.json.decode(done.out)["data"]["plan"]
    steps = {one["action"]: one for one in (*plan["steps"], *plan["optional"])}
    kernel, rocm = steps["boot-newer-kernel"], steps["update-rocm"]
    assert kernel["commands"][-1] == "sudo apt install linux-generic-hwe-24.04"
    assert not kernel.get("by_hand")
    assert kernel["title"] == "Boot kernel 6.18.4 or later: save-area fix"
    assert 'export ROCM_PATH="$(/home/user/venv/bin/python3 -m rocm_sdk path --root)"' in rocm["text"]
    told = rocmend("doctor", "--machine", "strix-halo", "--explain", "gfx1151-cwsr-save-area-too-small").out
    assert told.index("Move to a newer ROCm") < told.index("Boot kernel 6.18.4 or later")


@pytest.mark.parametrize("form", ["human", "md"])
def test_a_step_that_settles_nothing_is_for_its_findings(rocmend: Run, form: str) -> None:
    text = rocmend("doctor", "--machine", "strix-halo", "-v", "--format", form).out
    log = text[text.index("Save the kernel log") : text.index("Install a PyTorch")]
    assert "For" in log
    assert "Settles" not in log


def test_a_verdict_says_why_and_knows_what_a_step_replaces(rocmend: Run) -> None:
    lines = rocmend("doctor", "--machine", "strix-halo").out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("ROCm "))
    assert lines[place].split()[1] == "Problem"
    assert lines[place + 1].strip().startswith("GPU hangs are to be expected")


@pytest.mark.parametrize(
    ("machine", "entry", "target"),
    [
        ("rx-5600-xt", "install-override-crosses-classes", "gfx1010"),
        ("cuda-torch-on-amd", "porting-torch-overwritten-by-pip", "gfx1100"),
    ],
)
def test_an_explained_check_can_be_run(installed: Run, machine: str, entry: str, target: str) -> None:
    (check,) = [
        line
        for line in installed("doctor", "--machine", machine, "--explain", entry).out.splitlines()
        if "--native" in line
    ]
    assert check.endswith(f"--target {target}")


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        ("ID=debian\nVERSION_CODENAME=trixie\n", "sudo apt install -t trixie-backports linux-image-amd64"),
        ("ID=fedora\nVERSION_ID=43\n", "sudo dnf upgrade --refresh kernel"),
        ("ID=arch\n", "sudo pacman -Syu"),
        ('ID=ubuntu\nVERSION_ID="26.04"\n', "sudo apt install linux-generic-hwe-26.04"),
        ("ID=gentoo\n", ""),
    ],
    ids=["debian", "fedora", "arch", "ubuntu", "gentoo"],
)
def test_each_distribution_has_its_command_for_a_newer_kernel(
    os_release: str, command: str, machines: Path, tmp_path: Path, rocmend: Run
) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(machines / "strix-halo", mine)
    (mine / "root" / "etc" / "os-release").write_text(os_release)
    plan = msgspec.json.decode(rocmend("doctor", "--machine", mine, "--json").out)["data"]["plan"]
    (kernel,) = [one for one in plan["steps"] if one["action"] == "boot-newer-kernel"]
    assert kernel.get("commands", [""])[-1] == command
    assert bool(kernel.get("by_hand")) is not bool(command)


def test_what_is_optional_rides_in_the_reboot_of_the_plan(machines: Path, tmp_path: Path, rocmend: Run) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(machines / "strix-halo", mine)
    line = mine / "root" / "proc" / "cmdline"
    line.write_text(line.read_text().replace("amdgpu.gttsize=98304 ", ""))
    told = rocmend("doctor", "--machine", mine).out
    optional = " ".join(told[told.index("\nOptional\n") :].split())
    assert "Let the GPU use more of the memory (111 GiB of 124 GiB) (root, reboot of step 8, medium risk)" in optional
    script = rocmend("doctor", "--machine", mine, "--plan", "sh").out
    number = re.search(r"# Step (o\d+)[^#]*Optional: Let the GPU use more of the memory", script)
    assert number is not None
    assert script.index(f"    step {number[1]} run user reboot") < script.index("    reboot_step 8")


def test_a_gpu_that_could_not_be_seen_is_undecided(machines: Path, tmp_path: Path, rocmend: Run) -> None:
    mine = tmp_path / "mine"
    shutil.copytree(machines / "wsl2", mine)
    (mine / "commands" / "rocminfo.json").unlink()
    told = rocmend("doctor", "--machine", mine).out
    assert "Nothing needs to be done" not in told
    assert "Undecided: the GPU\nNo GPU could be seen" in told
    assert "rocminfo shows whether" in " ".join(told.split())


def test_a_note_is_about_the_gpu_that_is_here(installed: Run) -> None:
    assert "gfx1100" not in installed("doctor", "--machine", "strix-halo-healthy").out
    memory = " ".join(installed("doctor", "--machine", "rx-7900-xtx-ryzen").out.split())
    assert "AMD Radeon RX 7900 XTX: 24 GiB usable" in memory
