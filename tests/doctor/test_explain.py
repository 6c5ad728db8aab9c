from __future__ import annotations

from collections.abc import Callable

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.records import Remedy
from rocmend.doctor.explain import explain
from rocmend.kb.entry import Entry, Links, Status
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]
Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]


def test_links_are_resolved_in_both_directions(finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        finding_of("a", "True", title="Kernel {kernel.release}", links=Links(contradicts=("b",), see=("gone",))),
        finding_of("b", "True", links=Links(contradicts=("a",), resolved_by=("a",))),
        finding_of("c", "", status=Status.REFUTED, links=Links(refuted_by=("a",))),
        finding_of("d", "", status=Status.SUPERSEDED, links=Links(superseded_by=("a",), see=("a",))),
    )
    explanation = explain("a", knowledge)
    assert explanation.title == "Kernel"
    assert [(link.relation, link.entry_id, link.status) for link in explanation.links] == [
        ("contradicts", "b", Status.ACTIVE),
        ("see", "gone", None),
        ("supersedes", "d", Status.SUPERSEDED),
        ("refutes", "c", Status.REFUTED),
        ("resolves", "b", Status.ACTIVE),
        ("seen_from", "d", Status.SUPERSEDED),
    ]
    assert explanation.links[0].title == "Title of b"
    assert explanation.links[0].sources[0].url == "https://example.org/1"
    assert explanation.matches == ()


def test_with_a_machine_it_says_whether_it_applies(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(finding_of("a", "numa.balancing == 1"))
    (found,) = explain("a", knowledge, machine_of({"numa.balancing": 1})).matches
    assert found.applies is True


def test_an_unknown_id_names_its_neighbours(finding_of: Make, knowledge_of: Gather) -> None:
    with pytest.raises(UsageError, match="numa-balancing"):
        explain("numa-balance", knowledge_of(finding_of("numa-balancing", "True")))


def test_values_are_those_of_a_machine_it_applies_to(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    """A remedy whose condition does not hold there is left out; without such a machine nothing is left to fill in."""
    entry = finding_of(
        "a",
        "gpu.mes_version == 0x83",
        subject="gpu",
        title="MES {gpu.mes_version} of {gpu.name}",
        headline="An old MES",
        body="It has {gpu.mes_version}.",
        remedy=(Remedy("Do {gpu.name}.", ("x {gpu.name}",)), Remedy("No.", when="gpu.mes_version != 0x83")),
    )
    knowledge = knowledge_of(entry)
    machine = machine_of({"gpus.count": 1, "gpu.0.mes_version": 0x83, "gpu.0.name": "A; B"})
    here = explain("a", knowledge, machine)
    assert (here.title, here.machine) == ("MES 131 of A; B", "bench")
    assert here.entry.body == "It has 131."
    assert here.entry.remedy == (Remedy("Do A; B.", ("x A_ B",)),)
    for other in (None, machine_of({"gpus.count": 1, "gpu.0.mes_version": 0x84})):
        general = explain("a", knowledge, other)
        assert general.title == "An old MES"
        assert general.entry.remedy[0] == Remedy("Do the GPU.", ("x GPU_NAME",))
        assert len(general.entry.remedy) == 2
