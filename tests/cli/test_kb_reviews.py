"""What the calendar does to the knowledge: reviews come due, and nothing fails; what is archived is found by its id."""

from __future__ import annotations

import json
from collections.abc import Callable

from rocmend.kb.entry import Status
from rocmend.kb.load import load_entries

from .conftest import Done

Installed = Callable[..., Done]


def test_reviews_that_are_due_fail_nothing(installed: Installed) -> None:
    done = installed("kb", "lint", "--today", "2030-01-01", "--json")
    found = json.loads(done.out)["data"]
    assert done.code == 0
    assert {one["code"] for one in found} == {"KB004", "KB039"}
    assert all(one["warning"] for one in found)
    shown = installed("kb", "lint", "--today", "2030-01-01")
    assert "KB039 warning: amd-stable: read" in " ".join(shown.out.split())
    assert "0 problems" in shown.out


def test_an_archived_entry_is_shown_by_its_id_and_not_found_by_words(installed: Installed) -> None:
    entry = next(one for one in load_entries().entries.values() if one.status is Status.ARCHIVED)
    assert "archived" in installed("kb", "show", entry.id).out
    found = json.loads(installed("kb", "search", entry.id.replace("-", " "), "--limit", "500", "--json").out)["data"]
    assert entry.id not in {one["id"] for one in found}


def test_the_choice_for_a_card_comes_from_an_index_that_is_fed(installed: Installed) -> None:
    found = json.loads(installed("wheel", "choose", "torch", "--target", "gfx1201", "--json").out)["data"]["choices"]
    rows = load_entries().indexes
    first = found[0]
    assert first["index"] == "amd-stable"
    assert rows["amd-stable"].url in first["command"]
    assert first["read"] == rows["amd-stable"].read.isoformat()
    ended = [row.url for row in rows.values() if row.ended is not None]
    assert not any(url in one["command"] and "==" not in one["command"] for one in found for url in ended)
