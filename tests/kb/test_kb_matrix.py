from __future__ import annotations

from collections.abc import Callable

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.records import Source
from rocmend.kb.entry import Cell, Entry, Links, Status
from rocmend.kb.load import Knowledge
from rocmend.kb.matrix import build_matrix

Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]


def cell(row: str, target: str, state: str) -> Cell:
    return Cell("release", row, target, state)


def test_rows_and_targets_are_in_order(entry_of: Make, knowledge_of: Gather) -> None:
    cells = (
        cell("ROCm 7.10", "gfx1030", "full"),
        cell("ROCm 7.2", "gfx90a", "full"),
        cell("ROCm 6.4.4", "gfx908", "full"),
        cell("ROCm 7.10.0rc1", "gfx1100", "none"),
        cell("TheRock nightly", "gfx11-generic", "preview"),
        cell("ROCm 7.2", "gfx12-generic", "none"),
        cell("ROCm 7.2", "gfx9-4-generic", "none"),
        Cell("library", "MIOpen", "gfx1151", "full"),
    )
    matrix = build_matrix(knowledge_of(entry_of(cell=cells)), "release")
    assert matrix.rows == ("ROCm 6.4.4", "ROCm 7.2", "ROCm 7.10.0rc1", "ROCm 7.10", "TheRock nightly")
    assert matrix.targets == (
        "gfx908",
        "gfx90a",
        "gfx9-4-generic",
        "gfx1030",
        "gfx11-generic",
        "gfx1100",
        "gfx12-generic",
    )
    assert matrix.cell("ROCm 7.2", "gfx908") is None
    found = matrix.cell("ROCm 7.2", "gfx90a")
    assert found is not None
    assert found.claims[0].state == "full"


def test_contradictory_claims_are_both_kept_with_their_sources(entry_of: Make, knowledge_of: Gather) -> None:
    row = "ROCm 7.2"
    one = entry_of(id="one", cell=(cell(row, "gfx1151", "full"),), source=(Source("A", "https://a.example"),))
    two = entry_of(id="two", cell=(cell(row, "gfx1151", "none"),), source=(Source("B", "https://b.example"),))
    old = entry_of(
        id="a-old",
        status=Status.SUPERSEDED,
        links=Links(superseded_by=("one",)),
        cell=(cell(row, "gfx1151", "preview"), cell(row, "gfx1100", "none")),
    )
    new = entry_of(id="new", cell=(cell(row, "gfx1100", "full"),))
    matrix = build_matrix(knowledge_of(old, one, two, new), "release")
    disputed, settled = matrix.cell(row, "gfx1151"), matrix.cell(row, "gfx1100")
    assert disputed is not None
    assert settled is not None
    assert disputed.contradictory
    assert [(claim.entry_id, claim.state, claim.stands) for claim in disputed.claims] == [
        ("one", "full", True),
        ("two", "none", True),
        ("a-old", "preview", False),
    ]
    assert [claim.sources[0].title for claim in disputed.claims[:2]] == ["A", "B"]
    assert not settled.contradictory


def test_an_unknown_table_is_refused(knowledge_of: Gather) -> None:
    with pytest.raises(UsageError, match="pytorch-source"):
        build_matrix(knowledge_of(), "os")
