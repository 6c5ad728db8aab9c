from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.verdict import Verdict
from rocmend.lab.boot import Boot, parameters, problems, read_boot, reboot_plan
from rocmend.lab.experiment import Experiment
from rocmend.lab.laboratory import Laboratory
from rocmend.lab.load import load_experiment
from rocmend.lab.service import plan_of, status_of, trial_named
from rocmend.runner.spec import Local
from rocmend.store.store import Store

FACTORS = """
[[factor]]
name = "cwsr"
kind = "kernel-parameter"
parameter = "amdgpu.cwsr_enable"
values = ["unset", "0"]
baseline = "unset"

[[factor]]
name = "mes"
kind = "firmware"
label = "MES firmware"
file = "/sys/kernel/debug/dri/0/amdgpu_firmware_info"
pattern = "^MES .*firmware version: {value}$"
values = ["0x00000080", "0x00000086"]
baseline = "0x00000080"

[[strategy]]
id = "cwsr-off"
hypothesis = "No waves are saved."
sets = { mode = "good", cwsr = "0" }

[[strategy]]
id = "new-mes"
hypothesis = "The firmware is mended."
sets = { mode = "good", mes = "0x00000086" }

[oracle]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def _boot(root: Path, boot_id: str, cmdline: str, mes: str = "0x00000080") -> None:
    firmware = f"VCE feature version: 0, firmware version: 0x0\nMES feature version: 1, firmware version: {mes}\n"
    for name, text in {
        "proc/sys/kernel/random/boot_id": boot_id,
        "proc/cmdline": cmdline,
        "sys/kernel/debug/dri/0/amdgpu_firmware_info": firmware,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


@pytest.fixture
def booted(write: Callable[..., Path]) -> Experiment:
    return load_experiment(write(("\n[oracle]\n", FACTORS)))


def test_a_trial_waits_for_its_boot_and_runs_in_it(booted: Experiment, store: Store, root: Path) -> None:
    _boot(root, "boot-1", "root=/dev/sda1 quiet")
    trial = trial_named(booted, "cwsr-off")
    report = Laboratory(booted, store, root=root).run([trial_named(booted, "good"), trial])
    assert report.ran == {"good": 1}
    assert report.waiting == {"cwsr-off": "wanted amdgpu.cwsr_enable=0, found amdgpu.cwsr_enable unset"}
    again = Laboratory(booted, store, root=root).run([trial])  # not rebooted: it waits on, and nothing is recorded
    assert list(again.waiting) == ["cwsr-off"]
    assert [item.evidence.subject for item in store.query(kind="trial")] == ["good"]

    _boot(root, "boot-2", "root=/dev/sda1 quiet")  # rebooted without it
    assert list(Laboratory(booted, store, root=root).run([trial]).waiting) == ["cwsr-off"]
    record = next(iter(store.query(subject="cwsr-off"))).evidence
    assert (record.verdict, record.detail["boot"]) == (Verdict.INFRA, "boot-2")
    assert "was rebooted without it" in record.reason
    Laboratory(booted, store, root=root).run([trial])  # said once for that boot
    assert len(list(store.query(subject="cwsr-off"))) == 1

    _boot(root, "boot-3", "root=/dev/sda1 quiet amdgpu.cwsr-enable=0")
    assert Laboratory(booted, store, root=root).run([trial]).ran == {"cwsr-off": 1}
    status = {item.trial.id: item for item in status_of(booted, store, {}).outcomes}
    assert (status["cwsr-off"].verdict, status["cwsr-off"].waiting) == ("pass", "")


def test_the_baseline_wants_its_own_boot_too(booted: Experiment, store: Store, root: Path) -> None:
    _boot(root, "boot-1", "amdgpu.cwsr_enable=0")
    report = Laboratory(booted, store, root=root).run([trial_named(booted, "baseline")])
    assert report.waiting == {"baseline": "wanted amdgpu.cwsr_enable unset, found amdgpu.cwsr_enable=0"}


def test_firmware_counts_only_where_the_driver_says_so(booted: Experiment, root: Path) -> None:
    trial = trial_named(booted, "new-mes")
    _boot(root, "b", "quiet")
    assert [item.factor for item in problems(booted, trial, read_boot(booted, Local(), proc=root))] == ["mes"]
    _boot(root, "b", "quiet", mes="0x00000086")
    assert problems(booted, trial, read_boot(booted, Local(), proc=root)) == []
    unreadable = Boot("b", "quiet")
    assert "could not be read" in problems(booted, trial, unreadable)[0].found
    assert "must match '^MES .*firmware version: 0x00000086$'" in reboot_plan(booted, trial, unreadable).notes[0]


def test_plans_say_what_to_change_on_each_system(booted: Experiment) -> None:
    plan = reboot_plan(booted, trial_named(booted, "cwsr-off"), Boot("b", "quiet amdgpu.cwsr_enable=1"))
    steps = {step.system.split()[0]: "\n".join(step.commands) for step in plan.steps}
    assert plan.wants[0] == "amdgpu.cwsr_enable=0"
    assert "rpm-ostree kargs --delete=amdgpu.cwsr_enable=1 --append=amdgpu.cwsr_enable=0" in steps["Fedora"]
    assert "      - amdgpu.cwsr_enable=0\n      - -amdgpu.cwsr_enable=1" in steps["Talos"]
    assert "add amdgpu.cwsr_enable=0; take out amdgpu.cwsr_enable=1" in steps["systemd-boot"]
    assert {step.language for step in plan.steps if step.system.startswith("Talos")} == {"yaml"}


def test_trials_that_want_the_same_boot_share_a_plan(booted: Experiment, root: Path) -> None:
    _boot(root, "b", "amdgpu.cwsr_enable=0")
    reboots = plan_of(booted, {}, root=root).reboots
    assert sorted(len(item.trials) for item in reboots) == [1, 7]


def test_of_a_parameter_given_twice_the_last_counts() -> None:
    found = parameters('a=1 b-c="x y" a=2 quiet dyndbg="file x +p"')
    assert found == {"a": "2", "b_c": "x y", "quiet": "", "dyndbg": "file x +p"}


@given(st.text(max_size=200))
def test_any_command_line_is_read(text: str) -> None:
    assert all("=" not in name for name in parameters(text))
