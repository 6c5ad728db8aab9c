"""The entries that come with rocmend: each is linted, and each of its cases tried."""

from __future__ import annotations

import pytest

from rocmend.kb.cases import case_outcome
from rocmend.kb.lint import lint
from rocmend.kb.load import load_entries

KNOWLEDGE = load_entries()
TODAY = max(entry.reviewed for entry in KNOWLEDGE.entries.values())
"""The newest review: the tests say the same on every day; `make lint` and CI look at the calendar."""
PROBLEMS = lint(KNOWLEDGE, today=TODAY)
CASES = [(entry.id, number) for entry in KNOWLEDGE.entries.values() for number in range(len(entry.case))]


def test_every_file_is_an_entry() -> None:
    assert [str(problem) for problem in KNOWLEDGE.problems] == []


@pytest.mark.parametrize("entry_id", KNOWLEDGE.entries)
def test_the_entry_keeps_the_rules(entry_id: str) -> None:
    assert [f"{one.path}: {one.code} {one.message}" for one in PROBLEMS if one.entry_id == entry_id] == []


@pytest.mark.parametrize(("entry_id", "number"), CASES, ids=[f"{name}-{number + 1}" for name, number in CASES])
def test_the_case_comes_out_as_it_says(entry_id: str, number: int) -> None:
    entry = KNOWLEDGE.entries[entry_id]
    case = entry.case[number]
    outcome, matches = case_outcome(entry, case)
    assert {True: True, False: False, None: "unknown"}[outcome] == case.applies, (
        KNOWLEDGE.paths[entry_id],
        case.note,
        matches,
    )
