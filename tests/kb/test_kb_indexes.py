"""The dated table of indexes: what entries take from it, and that nothing repeats it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.codeobject.hip import headers
from rocmend.core.records import Source
from rocmend.kb import load
from rocmend.kb.entry import Entry, Install
from rocmend.kb.indexes import MAX_AGE_DAYS, Index, UnknownIndexError, fill_indexes, read_indexes
from rocmend.kb.lint import lint
from rocmend.kb.load import EntryFormatError, Knowledge, load_entries, parse_entry

READ = dt.date(2026, 6, 1)
NEW = Index(
    "the new index", "https://new.example/", "stable", {"torch": "2.14.0"}, ("10.0", "10.1"), READ, (Source("S"),),
    targets=("gfx1100", "gfx1201"), python=("3.11", "3.12"),
)  # fmt: skip
OLD = Index(
    "the old index", "https://old.example/", "stable", {}, ("7.2",), READ, (Source("S"),),
    ended=dt.date(2026, 5, 1), successor="new",
)  # fmt: skip
ROWS = {"new": NEW, "old": OLD, "py-rocm7.14": NEW}
ENTRY = """+++
id = "x"
title = "Take {{index:new.torch}}"
kind = "install-source"
status = "active"
reviewed = 2026-06-01
review_by = 2027-06-01
source = [{{ title = "S", url = "https://example.org" }}]

[[install]]
package = "torch"
index = "{index}"
command = "pip install torch --index-url {{index}}"
+++

From {{index:new}}, for ROCm {{index:new.rocm}} and Python {{index:new.python}}.
"""


def test_an_entry_takes_its_facts_from_the_table() -> None:
    entry = parse_entry(ENTRY.format(index="new"), indexes=ROWS)
    assert entry.title == "Take 2.14.0"
    assert entry.body == "From https://new.example/, for ROCm 10.1 and Python 3.11, 3.12."
    (install,) = entry.install
    assert (install.command, install.gfx) == ("pip install torch --index-url https://new.example/", NEW.targets)


def test_what_the_table_does_not_have_is_named_with_its_line() -> None:
    with pytest.raises(EntryFormatError, match=r"no index has the id 'newer'") as caught:
        parse_entry(ENTRY.format(index="newer"), indexes=ROWS)
    assert caught.value.line == 12
    with pytest.raises(EntryFormatError, match=r"no index has the id 'gone'") as caught:
        parse_entry(ENTRY.format(index="new").replace("{index:new}", "{index:gone}"), indexes=ROWS)
    assert caught.value.line == 16
    with pytest.raises(UnknownIndexError, match="no field or package 'jax'"):
        fill_indexes("{index:new.jax}", ROWS)


def test_an_id_may_hold_a_version() -> None:
    assert fill_indexes("{index:py-rocm7.14}", ROWS) == "https://new.example/"
    assert fill_indexes("{index:py-rocm7.14.torch} {gfx} ${VAR}", ROWS) == "2.14.0 {gfx} ${VAR}"


def _codes(knowledge: Knowledge, today: dt.date) -> list[tuple[str, bool]]:
    return [(problem.code, problem.warning) for problem in lint(knowledge, today=today, declared=())]


def test_a_row_is_to_be_read_again_after_45_days_and_that_fails_nothing() -> None:
    knowledge = Knowledge({}, indexes={"new": NEW})
    assert _codes(knowledge, READ + dt.timedelta(MAX_AGE_DAYS)) == []
    assert _codes(knowledge, READ + dt.timedelta(MAX_AGE_DAYS + 1)) == [("KB039", True)]


def test_what_is_wrong_with_a_row_is_an_error() -> None:
    wrong = Index("w", "ftp://w", "stable", {}, (), READ, (), targets=("gfx9999",), ended=READ, replaces="nothing")
    assert set(_codes(Knowledge({}, indexes={"w": wrong}), READ)) == {("KB038", False)}
    assert len(lint(Knowledge({}, indexes={"w": wrong}), today=READ, declared=())) == 5


@pytest.mark.parametrize(("command", "wrong"), [("pip install torch", True), ("pip install torch==2.9.1", False)])
def test_an_ended_index_serves_pinned_versions_only(
    entry_of: Callable[..., Entry], command: str, *, wrong: bool
) -> None:
    entry = entry_of(install=(Install("torch", command, index="old", gfx=("gfx1100",)),))
    found = lint(Knowledge({entry.id: entry}, indexes=ROWS), today=entry.reviewed, declared=())
    assert ["KB040"] * wrong == [problem.code for problem in found if problem.code == "KB040"]


def test_no_entry_action_or_module_repeats_an_address_of_the_table() -> None:
    rows = read_indexes()
    urls = re.compile("|".join(re.escape(row.url.rstrip("/")) + r"(?![\w.])" for row in rows.values()))
    files = [*load.ENTRIES.rglob("*.md"), *load.ACTIONS.glob("*.toml")]
    texts = {path.name: re.sub(r"(?m)^(url|    \{ text) = .*$", "", path.read_text()) for path in files}
    assert {name: urls.findall(text) for name, text in texts.items() if urls.search(text)} == {}
    assert rows["amd-stable"].url in Path(headers.__file__).read_text(), "a module below kb names the index, too"


def test_the_shipped_table_is_whole() -> None:
    knowledge = load_entries()
    unread = {name for name, row in knowledge.indexes.items() if row.read < dt.date(2026, 11, 29)}
    assert unread == {"amd-nightly"}, "what is known of it is of August"
    assert all(knowledge.indexes[row.successor].ended is None for row in _ended(knowledge))
    assert {install.index for entry in knowledge.entries.values() for install in entry.install} >= {"amd-stable"}


def _ended(knowledge: Knowledge) -> list[Index]:
    return [row for row in knowledge.indexes.values() if row.ended is not None]
