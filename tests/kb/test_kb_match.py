from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rocmend.kb.cases import case_machine, case_outcome
from rocmend.kb.entry import Case, Entry, Scope
from rocmend.kb.match import Matcher, match
from rocmend.kb.predicate import PredicateError
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]
Make = Callable[..., Entry]

TWO_GPUS = {"gpu.0.gfx_target": "gfx1151", "gpu.1.gfx_target": "gfx942", "gpu.0.name": "Radeon 8060S"}


def outcomes(entry: Entry, machine: Machine) -> list[tuple[str, bool | None]]:
    return [(found.subject, found.applies) for found in match(entry, machine)]


def test_an_entry_about_gpus_is_matched_against_each(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when='gpu.name == "Radeon 8060S"', title="{gpu.name} has it")
    found = match(entry, machine_of(TWO_GPUS))
    assert [(one.subject, one.gpu, one.applies, one.title) for one in found] == [
        ("gpu.0", 0, True, "Radeon 8060S has it"),
        ("gpu.1", 1, None, "gfx942 has it"),
    ]
    assert [fact.key for fact in found[0].evidence] == ["gpu.0.name"]
    assert [gap.key for gap in found[1].missing] == ["gpu.1.name"]


@pytest.mark.parametrize(
    ("gfx", "expected"),
    [
        (("gfx1151",), [True, False]),
        (("gfx11-generic",), [True, False]),
        (("gfx9-4-generic", "gfx1151"), [True, True]),
        (("gfx1100",), [False, False]),
        ((), [True, True]),
    ],
)
def test_the_scope_of_targets_is_required(
    gfx: tuple[str, ...], expected: list[bool], machine_of: Build, entry_of: Make
) -> None:
    entry = entry_of(subject="gpu", when="True", scope=Scope(gfx=gfx))
    found = match(entry, machine_of(TWO_GPUS))
    assert [one.applies for one in found] == expected
    assert [one.in_scope for one in found] == expected


def test_a_generic_class_that_the_machine_states_wins(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when="True", scope=Scope(gfx=("gfx77-generic",)))
    facts = {"gpu.0.gfx_target": "gfx7799", "gpu.0.generic_class": "gfx77-generic"}
    assert outcomes(entry, machine_of(facts)) == [("gpu.0", True)]
    assert outcomes(entry, machine_of({"gpu.0.gfx_target": "gfx7799"})) == [("gpu.0", False)]


def test_an_unknown_target_leaves_the_scope_open(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when="gpu.is_apu", scope=Scope(gfx=("gfx1151",)))
    (found,) = match(entry, machine_of({"gpu.0.is_apu": True}))
    assert found.applies is None
    assert found.missing[0].key == "gpu.0.gfx_target"
    assert outcomes(entry, machine_of({"gpu.0.is_apu": False})) == [("gpu.0", False)]


def test_another_subject_may_read_the_gpu(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="torch", when='gpu.gfx_target == "gfx942"')
    assert outcomes(entry, machine_of(TWO_GPUS)) == [("torch", False), ("torch", True)]


def test_another_subject_with_targets_needs_one_such_gpu(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="kernel", when="numa.balancing == 1", scope=Scope(gfx=("gfx942",)))
    facts = {"numa.balancing": 1}
    assert outcomes(entry, machine_of({**facts, **TWO_GPUS})) == [("kernel", True)]
    assert outcomes(entry, machine_of({**facts, "gpu.0.gfx_target": "gfx1151"})) == [("kernel", False)]
    assert outcomes(entry, machine_of({**facts, "gpus.count": 0})) == [("kernel", False)]
    assert outcomes(entry, machine_of(facts)) == [("kernel", None)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, True),
        ({"ask.workload": None}, True),
        ({"ask.workload": "llama.cpp"}, True),
        ({"ask.workload": "pytorch"}, False),
    ],
)
def test_the_scope_of_workloads_counts_where_one_is_named(
    facts: dict[str, Any], expected: bool, machine_of: Build, entry_of: Make
) -> None:
    entry = entry_of(subject="env", when="True", scope=Scope(workload=("llama.cpp",)))
    assert outcomes(entry, machine_of(facts)) == [("env", expected)]


def test_without_gpus_there_is_nothing_to_match_or_it_is_unknown(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when='gpu.gfx_target == "gfx942"')
    assert match(entry, machine_of({"gpus.count": 0})) == []
    (found,) = match(entry, machine_of({}, {"gpu.*": "no permission"}))
    assert (found.applies, found.subject, found.missing[0].reason) == (None, "gpu", "no permission")


def test_an_entry_without_a_predicate_applies_within_its_scope(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", scope=Scope(gfx=("gfx942",)))
    assert outcomes(entry, machine_of(TWO_GPUS)) == [("gpu.0", False), ("gpu.1", True)]


def test_the_scope_is_evidence_too(machine_of: Build, entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when="gpu.is_apu", scope=Scope(gfx=("gfx1151",), workload=("pytorch",)), title="x")
    facts = {"gpu.0.gfx_target": "gfx1151", "gpu.0.is_apu": True, "ask.workload": "pytorch"}
    (found,) = match(entry, machine_of(facts))
    assert {fact.key for fact in found.evidence} == {"gpu.0.gfx_target", "gpu.0.is_apu", "ask.workload"}


def test_a_malformed_predicate_is_an_error(machine_of: Build, entry_of: Make) -> None:
    with pytest.raises(PredicateError):
        Matcher(machine_of({})).match(entry_of(subject="x", when="1 +"))


def test_a_case_describes_one_gpu_and_nothing_else() -> None:
    machine = case_machine(Case(applies=True, facts={"gpu.x": 1, "gpu.1.x": 2, "gpus.count": 2}, unset=("gpu.name",)))
    assert {key: fact.value for key, fact in machine.facts.items()} == {
        "gpu.0.x": 1,
        "gpu.1.x": 2,
        "gpus.count": 2,
        "gpu.0.name": None,
    }


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"env.HSA_XNACK": "1"}, True),
        ({"env.collected": True}, False),
        ({}, None),
    ],
)
def test_a_case_has_an_outcome(facts: dict[str, Any], expected: bool | None, entry_of: Make) -> None:
    entry = entry_of(subject="env", when='env.HSA_XNACK == "1"')
    assert case_outcome(entry, Case(applies=True, facts=facts))[0] is expected


def test_with_several_gpus_a_case_applies_where_one_does(entry_of: Make) -> None:
    entry = entry_of(subject="gpu", when="gpu.is_apu")
    facts = {"gpu.0.is_apu": False, "gpu.1.is_apu": True, "gpu.2.gfx_target": "gfx942"}
    assert case_outcome(entry, Case(applies=True, facts=facts))[0] is True
    assert case_outcome(entry, Case(applies=False, facts={"gpus.count": 0}))[0] is False
