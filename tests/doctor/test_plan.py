"""The plan: each action once, in an order that the knowledge demands, on the captured machines and on any mixture."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.records import Fact, Finding, Phase, Remedy, Severity
from rocmend.doctor.diagnose import diagnose
from rocmend.doctor.plan import make_plan
from rocmend.doctor.records import Diagnosis, Missing, Plan, Undecided
from rocmend.kb.action import Action
from rocmend.kb.load import load_entries
from rocmend.machine.collect import open_machine, snapshot

MACHINES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"
NAMES = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())


@cache
def of(name: str) -> Diagnosis:
    return diagnose(snapshot(open_machine(MACHINES / name), name=name), load_entries())


def place(plan: Plan, action: str) -> int:
    (number,) = [
        step.number
        for step in plan.steps
        if any(action in {one, one.partition(":")[0]} for one in step.joins or (step.action,))
    ]
    return number


@pytest.mark.parametrize("name", NAMES)
def test_every_remedy_is_somewhere_and_every_action_once(name: str) -> None:
    diagnosis = of(name)
    plan = diagnosis.plan
    actions = [one for step in (*plan.steps, *plan.optional) for one in step.joins or (step.action,) if one]
    assert len(actions) == len(set(actions))
    assert [step.number for step in plan.steps] == list(range(1, len(plan.steps) + 1))
    groups = (*plan.steps, *plan.optional, *plan.investigate)
    settled = {entry for step in groups for entry in step.settles}
    assert settled >= {one.entry_id for one in diagnosis.findings if one.remedies}
    for step in plan.steps:
        assert step.phase is Phase.REBOOT or ((step.check or step.expect) and step.undo), step.action
        assert all(number < step.number for number in step.after)
        told = (step.title, step.text, step.check, step.expect, step.undo, *step.commands)
        assert not any("{gpu." in text or "{name}" in text or "{argument}" in text for text in told)


def test_a_sick_strix_halo() -> None:
    """Native code before the override goes, ROCm with the kernel, firmware before parameters, one reboot for all."""
    plan = of("strix-halo").plan
    order = [
        "save-kernel-log",
        "install-native-torch",
        "unset-variable:HSA_OVERRIDE_GFX_VERSION",
        "update-gpu-firmware",
        "boot-newer-kernel",
        "remove-kernel-parameter:aamdgpu.cwsr_enable=0",
        "reboot",
        "set-performance-level:0000:c5:00.0=high",
    ]
    places = [place(plan, action) for action in order]
    assert places == sorted(places)
    assert "update-rocm" in [step.action for step in plan.optional]
    assert {"test-convolution"} == {step.action for step in plan.steps if step.number > place(plan, "reboot")} - {
        "set-performance-level:0000:c5:00.0=high"
    }
    reboot = place(plan, "reboot")
    needing = [step.number for step in plan.steps if "reboot" in step.needs and step.number != reboot]
    assert needing == list(range(min(needing), reboot))
    assert plan.steps[reboot - 1].after == tuple(needing)
    assert {"driver-dmesg-mes-hang", "driver-dmesg-reset-mode2"} <= set(plan.steps[reboot - 1].settles)
    unset = plan.steps[place(plan, "unset-variable:HSA_OVERRIDE_GFX_VERSION") - 1]
    assert {"gfx1151-override-to-gfx1100", "install-torch-runs-through-override"} <= set(unset.settles)
    assert unset.undo == "`export HSA_OVERRIDE_GFX_VERSION='11.0.0'`"


def test_no_wave_saving_is_not_advised_where_it_does_not_help() -> None:
    """MES 0x83 hangs with amdgpu.cwsr_enable=0 as well: neither a step nor an alternative, nor by correcting a typo."""
    plan = of("strix-halo").plan
    others = [other for step in plan.steps for other in step.alternatives]
    assert not any(
        "set-kernel-parameter:amdgpu.cwsr_enable" in action
        for action in [step.action for step in plan.steps] + [o.action for o in others]
    )
    edit = plan.steps[place(plan, "remove-kernel-parameter:aamdgpu.cwsr_enable=0") - 1]
    assert "Remove the kernel parameter aamdgpu.cwsr_enable=0." in edit.text
    assert "orrect the" not in edit.text + " ".join(edit.commands)
    assert any("take aamdgpu.cwsr_enable=0 out" in line for line in edit.commands)
    assert len(edit.check) < 450


def test_no_wave_saving_is_the_interim_where_it_helps() -> None:
    machine = snapshot(open_machine(MACHINES / "strix-halo"), name="strix-halo")
    facts = {**machine.facts, "gpu.0.mes_version": Fact("gpu.0.mes_version", 0x80, "test")}
    plan = diagnose(msgspec.structs.replace(machine, facts=facts), load_entries()).plan
    (other,) = plan.steps[place(plan, "boot-newer-kernel") - 1].alternatives
    assert (other.action, other.interim) == ("set-kernel-parameter:amdgpu.cwsr_enable=0", True)


def test_an_override_that_crosses_classes_goes_first() -> None:
    plan = of("rx-5600-xt").plan
    order = ["unset-variable:HSA_OVERRIDE_GFX_VERSION", "install-native-torch", "test-convolution"]
    assert [step.action for step in plan.steps] == order
    (interim,) = plan.steps[1].alternatives
    assert (interim.title, interim.interim) == ("Run convolutions on the CPU", True)


@pytest.mark.parametrize(("name", "target"), [("strix-halo", "gfx1151"), ("rx-5600-xt", "gfx1010")])
def test_the_check_of_torch_names_the_gpu(name: str, target: str) -> None:
    """Also where the finding that asks for it is about no GPU."""
    plan = of(name).plan
    assert plan.steps[place(plan, "install-native-torch") - 1].check.endswith(f" --target {target}")


def test_other_machines() -> None:
    assert [step.action for step in of("no-driver").plan.steps] == ["join-gpu-groups", "allow-amdgpu", "reboot"]
    assert [step.action for step in of("cuda-torch-on-amd").plan.steps] == [
        "remove-cuda-leftovers",
        "install-native-torch",
        "protect-torch-from-pip",
    ]
    mi300x = of("mi300x").plan
    assert [step.action for step in mi300x.steps] == [
        "unset-variable:TORCHINDUCTOR_MAX_AUTOTUNE",
        "disable-numa-balancing",
    ]
    assert [step.action for step in mi300x.optional] == ["remove-amdgpu-dkms"]
    assert of("wsl2").plan.steps == ()
    assert [step.action for step in of("wsl2").plan.optional] == [
        "update-rocm-for-wsl",
        "set-variable:TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
    ]


def test_what_cannot_be_decided_is_asked_for_once() -> None:
    found = of("rx-5600-xt")
    (ask,) = found.plan.decide
    assert ask.command == 'sudo -E env "PATH=$PATH" rocmend machine capture FOLDER'
    assert ask.how.startswith("on that machine")
    assert len(ask.entries) == len(found.undecided)
    (here,) = make_plan(found.findings, found.undecided, {}).decide
    assert here.command == 'sudo -E env "PATH=$PATH" rocmend doctor'
    assert "Undo: `sudo sysctl kernel.dmesg_restrict=1`" in here.how


def _finding(entry_id: str, *remedies: Remedy, severity: Severity = Severity.WARNING) -> Finding:
    return Finding(entry_id, f"Title of {entry_id}", severity, remedies=remedies)


def _do(action: str, **fields: object) -> Remedy:
    return Remedy(f"Do {action}.", action=action, phase=Phase.INSTALL, expect="done", undo="Undo it.", **fields)  # type: ignore[arg-type]


def test_optional_steps_keep_their_order_too() -> None:
    note = _finding("torch", _do("a-protect", after=("b-install",)), _do("b-install"), severity=Severity.INFO)
    assert [step.action for step in make_plan((note,), (), {}).optional] == ["b-install", "a-protect"]


REBOOT = {"reboot": Action("Reboot", Phase.REBOOT, needs=("root", "reboot"), id="reboot")}


def test_what_needs_a_step_that_takes_effect_at_the_reboot_comes_after_it() -> None:
    findings = (
        _finding("torch", _do("install", after=("driver",))),
        _finding("driver", _do("driver", needs=("reboot",))),
    )
    plan = make_plan(findings, (), REBOOT)
    assert [step.action for step in plan.steps] == ["driver", "reboot", "install"]


def test_of_two_orders_the_more_severe_findings_stands() -> None:
    cautious = _finding("cautious", _do("unset", after=("install",)), _do("install"))
    urgent = _finding("urgent", _do("install", after=("unset",)), _do("unset"), severity=Severity.ERROR)
    for findings in ((cautious, urgent), (urgent, cautious)):
        assert [step.action for step in make_plan(findings, (), {}).steps] == ["unset", "install"]


def test_what_contradicts_a_more_severe_finding_becomes_an_alternative() -> None:
    findings = (
        _finding("a", _do("set-variable:X=1")),
        _finding("b", _do("unset-variable:X"), severity=Severity.ERROR),
    )
    (step,) = make_plan(findings, (), {}).steps
    assert step.action == "unset-variable:X"
    assert [(other.action, other.interim) for other in step.alternatives] == [("set-variable:X=1", False)]


def test_an_alternative_to_what_nobody_asks_for_is_a_step() -> None:
    plan = make_plan((_finding("a", _do("b", until="c")),), (), {})
    assert [step.action for step in plan.steps] == ["b"]


def test_each_way_to_decide_is_named_once() -> None:
    def asked(entry_id: str, *missing: tuple[str, str]) -> Undecided:
        return Undecided(entry_id, "t", Severity.ERROR, "", tuple(Missing(key, reason) for key, reason in missing))

    ways = make_plan(
        (),
        (
            asked("a", ("gpu.0.mes_version", "no permission"), ("ask.workload", "nobody said")),
            asked("b", ("kfd.writable", "needs root"), ("dmesg.mes_hang", "Operation not permitted")),
            asked("c", ("numa.nodes", "no such file"), ("dmesg.sdma_error", "Operation not permitted")),
            asked("d", ("numa.balancing", "no such file")),
            Undecided("e", "t", Severity.INFO, "", notes=("odd",)),
        ),
        {},
    ).decide
    assert [(one.command.partition(" ")[0], one.reason, one.keys, one.entries) for one in ways] == [
        (
            "sudo",
            "no permission; needs root; Operation not permitted",
            ("gpu.0.mes_version", "kfd.writable", "dmesg.mes_hang", "dmesg.sdma_error"),
            ("a", "b", "c"),
        ),
        ("", "", ("ask.workload",), ("a",)),
        ("", "no such file", ("numa.nodes", "numa.balancing"), ("c", "d")),
        ("", "odd", (), ("e",)),
    ]
    assert ways[1].how == "say what the machine is for: `--for WORKLOAD`"
    assert ways[3].how == ""


@cache
def all_findings() -> tuple[Finding, ...]:
    """Every finding that an entry can make, with its remedies as they are written."""
    return tuple(
        Finding(entry.id, entry.title, entry.severity, remedies=entry.remedy)
        for entry in load_entries().entries.values()
        if entry.severity is not None and entry.when
    )


@given(st.data())
def test_any_mixture_of_findings_makes_a_plan(data: st.DataObject) -> None:
    findings = data.draw(st.lists(st.sampled_from(all_findings()), unique_by=lambda one: one.entry_id, max_size=25))
    actions = load_actions()
    plan = make_plan(findings, (), actions)
    assert plan == make_plan(list(reversed(findings)), (), actions)
    keys = [one for step in (*plan.steps, *plan.optional) for one in step.joins or (step.action,) if one]
    assert len(keys) == len(set(keys))
    assert sum(any(map(_edits_command_line, step.joins or (step.action,))) for step in plan.steps) <= 1
    assert all(number < step.number for step in plan.steps for number in step.after)
    groups = (*plan.steps, *plan.optional, *plan.investigate)
    settled = {entry for step in groups for entry in step.settles}
    settled |= {entry for step in groups for other in step.alternatives for entry in other.settles}
    assert settled == {one.entry_id for one in findings if one.remedies}
    reboots = [step.number for step in plan.steps if step.phase is Phase.REBOOT]
    assert len(reboots) <= 1
    assert all(step.number <= reboots[0] for step in plan.steps if "reboot" in step.needs)


def _edits_command_line(action: str) -> bool:
    known = load_actions().get(action.partition(":")[0])
    return known is not None and known.kernel_command_line


@cache
def load_actions() -> dict[str, Action]:
    return dict(load_entries().actions)


def test_a_setting_of_each_card_is_a_step_for_each_and_one_finding() -> None:
    machine = snapshot(open_machine(MACHINES / "mi300x"), name="mi300x")
    low = {f"gpu.{index}.performance_level": Fact(f"gpu.{index}.performance_level", "low", "test") for index in (0, 1)}
    found = diagnose(msgspec.structs.replace(machine, facts={**machine.facts, **low}), load_entries())
    (finding,) = [one for one in found.findings if one.entry_id == "gfx1151-performance-level-low"]
    slots = [machine.value(f"gpu.{index}.pci_slot") for index in (0, 1)]
    assert [remedy.action for remedy in finding.remedies] == [f"set-performance-level:{slot}=auto" for slot in slots]
    commands = [step.commands for step in found.plan.steps if step.action.startswith("set-performance-level")]
    path = "/sys/bus/pci/devices/{}/power_dpm_force_performance_level"
    assert commands == [(f"echo auto | sudo tee {path.format(slot)}",) for slot in slots]
