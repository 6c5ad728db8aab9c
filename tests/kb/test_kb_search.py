from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.records import Source
from rocmend.kb.entry import Entry
from rocmend.kb.load import Knowledge, load_entries
from rocmend.kb.search import WEIGHTS, search
from rocmend.kb.sources import list_sources

Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]

REAL = load_entries()


def ids(knowledge: Knowledge, query: str) -> list[str]:
    return [hit.entry.id for hit in search(knowledge, query)]


def test_a_title_counts_more_than_a_body(entry_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        entry_of(id="a", title="Nothing", body="SDMA " * 100),
        entry_of(id="b", title="SDMA stalls", body="Copying."),
        entry_of(id="c", title="Other", body="Nothing at all."),
    )
    assert ids(knowledge, "sdma") == ["b", "a"]
    hit = search(knowledge, "sdma")[0]
    assert hit.score == WEIGHTS["title"]
    assert hit.found == ("sdma: title",)


def test_every_word_must_occur_where_one_entry_has_them_all(entry_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        entry_of(id="a", title="GPU hang"),
        entry_of(id="b", title="GPU hang under load"),
        entry_of(id="c", title="load"),
    )
    assert ids(knowledge, "hang, LOAD!") == ["b"]
    assert ids(knowledge, "hang zzz") == ["a", "b"]
    assert ids(knowledge, "zzz") == []
    assert ids(knowledge, " ?! ") == []


def test_beginnings_and_pieces_of_words_are_found(entry_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(entry_of(id="a", title="HSA_ENABLE_SDMA"), entry_of(id="b", title="hipBLASLt 7.2.1"))
    assert ids(knowledge, "sdma") == ["a"]
    assert ids(knowledge, "hsa_enable_sdma") == ["a"]
    assert ids(knowledge, "hipbl") == ["b"]
    assert ids(knowledge, "7.2.1") == ["b"]


def test_the_shipped_entries_are_found_by_their_words() -> None:
    assert ids(REAL, "cwsr save area")[0] == "gfx1151-cwsr-save-area-too-small"
    assert len(search(REAL, "gfx1151", limit=3)) == 3


@pytest.mark.slow
@given(st.text(max_size=80))
def test_any_text_can_be_searched(query: str) -> None:
    for hit in search(REAL, query):
        assert hit.score > 0
        assert hit.found


def test_sources_are_listed_with_who_cites_them(entry_of: Make, knowledge_of: Gather) -> None:
    shared, ours = Source("A", "https://a.example"), Source("Our bench", kind="measurement")
    knowledge = knowledge_of(entry_of(id="one", source=(shared, shared)), entry_of(id="two", source=(ours, shared)))
    citations = list_sources(knowledge)
    assert [(one.source.title, one.entries) for one in citations] == [("Our bench", ("two",)), ("A", ("one", "two"))]


def test_every_shipped_entry_is_cited_from_somewhere() -> None:
    assert {name for one in list_sources(REAL) for name in one.entries} == set(REAL.entries)
