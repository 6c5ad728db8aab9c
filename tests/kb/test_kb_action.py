from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.records import Phase, Remedy, Risk
from rocmend.kb.action import Action, Variant, action_name, on_machine, resolved, setting_of, with_argument
from rocmend.kb.load import load_entries
from rocmend.kb.predicate import compile_predicate
from rocmend.machine.facts import Machine

UNSET = Action(
    "Unset {name}",
    Phase.ENVIRONMENT,
    commands=("unset {name}",),
    check='test -z "${{name}+set}"',
    undo="`export {name}={env.{name}}`",
    risk=Risk.LOW,
    after=("install",),
    variant=(
        Variant('os.id == "fedora"', ("set -e {name}",), undo="set {name} again"),
        Variant('os.id == "nixos"', (), text="Take {name} out."),
    ),
    id="unset-variable",
)
ACTIONS = {"unset-variable": UNSET}


def test_a_remedy_takes_from_its_action_what_it_does_not_say() -> None:
    made = resolved(Remedy("It floods the log.", action="unset-variable:NCCL_DEBUG", after=("log",)), ACTIONS)
    assert made.text == "Unset NCCL_DEBUG. It floods the log."
    assert made.commands == ("unset NCCL_DEBUG",)
    assert made.check == 'test -z "${NCCL_DEBUG+set}"'
    assert made.undo == "`export NCCL_DEBUG={env.NCCL_DEBUG}`"
    assert made.after == ("log", "install")
    assert (made.phase, made.risk) == (Phase.ENVIRONMENT, Risk.LOW)
    own = resolved(Remedy(action="unset-variable:A", commands=("mine",), risk=Risk.HIGH, phase=Phase.FIRST), ACTIONS)
    assert (own.commands, own.risk, own.phase) == (("mine",), Risk.HIGH, Phase.FIRST)
    assert resolved(Remedy("x", action="other"), ACTIONS) == Remedy("x", action="other")


def test_commands_are_those_of_the_distribution(machine_of: Callable[..., Machine]) -> None:
    remedy = resolved(Remedy(action="unset-variable:A"), ACTIONS)
    fedora = on_machine(remedy, UNSET, machine_of({"os.id": "fedora"}))
    assert (fedora.commands, fedora.undo, fedora.by_hand) == (("set -e A",), "set A again", False)
    assert on_machine(remedy, UNSET, machine_of({"os.id": "debian"})) == remedy
    assert on_machine(remedy, UNSET, machine_of({})) == remedy
    nixos = on_machine(remedy, UNSET, machine_of({"os.id": "nixos"}))
    assert (nixos.commands, nixos.text, nixos.by_hand) == ((), "Unset A. Take A out.", True)
    own = resolved(Remedy(action="unset-variable:A", commands=("mine",)), ACTIONS)
    assert on_machine(own, UNSET, machine_of({"os.id": "fedora"})) == own


CMDLINE = "ro quiet modprobe.blacklist={}"


@pytest.mark.parametrize(
    ("action", "facts", "told", "not_told"),
    [
        ("set-kernel-parameter:iommu=pt", {"os.id": "ubuntu", "os.like": ["debian"]}, "update-grub", ""),
        ("set-kernel-parameter:iommu=pt", {"os.id": "opensuse-tumbleweed", "os.like": ["opensuse", "suse"]},
         "grub2-mkconfig -o /boot/grub2/grub.cfg", "update-grub"),
        ("set-kernel-parameter:iommu=pt", {"os.id": "bazzite", "os.like": ["fedora"], "os.ostree": True},
         'rpm-ostree kargs $(printf -- "--append-if-missing=%s " iommu=pt)', "grubby"),
        ("set-kernel-parameter:iommu=pt", {"os.id": "pop", "os.like": ["ubuntu", "debian"]}, "kernelstub", "grub"),
        ("set-kernel-parameter:iommu=pt", {"os.id": "nixos", "os.like": []}, "", "sudo"),
        ("set-kernel-parameter:iommu=pt", {"os.id": "steamos", "os.like": ["arch"]}, "", "sudo"),
        ("set-kernel-parameter:iommu=pt", {"os.id": "gentoo", "os.like": []}, "", "sudo"),
        ("update-gpu-firmware", {"os.id": "opensuse-leap", "os.like": ["suse", "opensuse"]}, "zypper", "apt"),
        ("update-gpu-firmware", {"os.id": "fedora", "os.like": [], "os.ostree": True}, "rpm-ostree", "dnf"),
        ("allow-amdgpu", {"os.id": "fedora", "kernel.cmdline": CMDLINE.format("amdgpu")}, "grubby", ""),
        ("allow-amdgpu", {"os.id": "fedora", "kernel.cmdline": CMDLINE.format("nouveau,amdgpu")}, "", "sudo"),
        ("allow-amdgpu", {"os.id": "fedora", "kernel.cmdline": "ro rd.driver.blacklist=amdgpu"}, "", "sudo"),
        ("join-gpu-groups", {"user.groups": ["me", "video"]}, "usermod -a -G render ", "video"),
    ],
)  # fmt: skip
def test_no_machine_gets_the_commands_of_another_distribution(
    machine_of: Callable[..., Machine], action: str, facts: dict[str, object], told: str, not_told: str
) -> None:
    known = load_entries().actions
    remedy = resolved(Remedy(action=action), known)
    made = on_machine(remedy, known[action_name(action)], machine_of(facts))
    commands = "; ".join(made.commands)
    assert told in commands
    assert not not_told or not_told not in f"{commands} {made.undo if told else ''}"
    assert made.by_hand == (not told)


def test_package_managers_stand_in_actions_or_behind_a_condition_on_the_distribution() -> None:
    tool = re.compile(r"\b(apt|apt-get|dnf|zypper|pacman|update-grub|grubby)\b")
    knowledge = load_entries()
    loose = [
        (entry.id, line)
        for entry in knowledge.entries.values()
        if entry.severity is not None
        for remedy in entry.remedy
        for line in remedy.commands
        if tool.search(line)
        and "os.id" not in f"{entry.when} {remedy.when}"
        and action_name(remedy.action) not in knowledge.actions
    ]
    assert loose == []


@pytest.mark.parametrize(
    ("action", "setting"),
    [
        ("unset-variable:A", "variable:A"),
        ("set-variable:A=1:2", "variable:A"),
        ("remove-kernel-parameter:a.b", "kernel-parameter:a.b"),
        ("remove-amdvlk", ""),
        ("install-native-torch", ""),
    ],
)
def test_what_an_action_sets(action: str, setting: str) -> None:
    assert setting_of(action) == setting
    assert action_name(action) == action.split(":", maxsplit=1)[0]


def test_an_argument_has_a_name_and_a_value() -> None:
    assert with_argument("{argument}|{name}|{value}", "set-variable:A=b=c") == "A=b=c|A|b=c"


def test_every_shipped_action_is_asked_for_and_sound() -> None:
    knowledge = load_entries()
    remedies = [remedy for entry in knowledge.entries.values() for remedy in entry.remedy]
    used = {action_name(remedy.action) for remedy in remedies}
    declared = set(knowledge.actions) | {action_name(one.action) for one in remedies if one.phase is not None}
    assert set(knowledge.actions) <= used
    for action in knowledge.actions.values():
        assert {action_name(other) for other in action.after} <= declared, action.id
        assert action.phase is Phase.REBOOT or ((action.check or action.expect) and action.undo), action.id
        for variant in action.variant:
            compile_predicate(variant.when)


def test_a_malformed_action_is_a_problem_and_the_rest_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "actions").mkdir()
    (tmp_path / "actions" / "bad.toml").write_text('title = "x"\nphase = "sometime"\n')
    (tmp_path / "actions" / "worse.toml").write_text("title = \n")
    (tmp_path / "actions" / "good.toml").write_text('title = "Do good"\nphase = "install"\n')
    knowledge = load_entries(tmp_path, builtin=False)
    assert [Path(problem.path).name for problem in knowledge.problems] == ["bad.toml", "worse.toml"]
    assert knowledge.actions["good"] == Action("Do good", Phase.INSTALL, id="good")
