from __future__ import annotations

from collections.abc import Callable

import pytest

from rocmend.core.errors import UsageError
from rocmend.doctor.explain import explain
from rocmend.kb.entry import Entry, Links, Status
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]
Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]


def test_links_are_resolved_in_both_directions(finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        finding_of("a", "True", title="On {kernel.release}", links=Links(contradicts=("b",), see=("gone",))),
        finding_of("b", "True", links=Links(contradicts=("a",), resolved_by=("a",))),
        finding_of("c", "", status=Status.REFUTED, links=Links(refuted_by=("a",))),
        finding_of("d", "", status=Status.SUPERSEDED, links=Links(superseded_by=("a",), see=("a",))),
    )
    explanation = explain("a", knowledge)
    assert explanation.title == "On <kernel.release>"
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
