"""No page, search result or explanation shows a template."""

from __future__ import annotations

import re

import pytest

from rocmend.cli.views.entry import entry_document
from rocmend.cli.views.knowledge import hits_document
from rocmend.doctor.explain import explain
from rocmend.kb.general import headline
from rocmend.kb.load import Knowledge, load_entries
from rocmend.kb.search import Hit
from rocmend.kb.template import PLACEHOLDER, placeholders
from rocmend.machine.facts import Machine
from rocmend.report import markdown

TEMPLATE = re.compile(rf"{PLACEHOLDER.pattern}|\{{(?:gfx|family|argument|name|value)\}}|\0|<\w+\.\w[\w.]*>")
ODD = re.compile(r" {2}| [,;)]| [.:](?:\s|$)|\( | \(\)|[:=]$")
NOWHERE = Machine("nowhere", "2026-11-28", {}, {})


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load_entries()


def test_pages_and_explanations(knowledge: Knowledge) -> None:
    for entry_id in knowledge.entries:
        for machine in (None, NOWHERE):
            page = markdown.render(entry_document(explain(entry_id, knowledge, machine), knowledge))
            assert not (found := TEMPLATE.search(page)), (entry_id, found)


def test_search_results_read_as_sentences(knowledge: Knowledge) -> None:
    hits = [Hit(entry, 1.0, ()) for entry in knowledge.entries.values()]
    assert not TEMPLATE.search(markdown.render(hits_document("all", hits, len(hits))))
    for entry in knowledge.entries.values():
        if not placeholders(entry.title):
            continue
        assert not (found := ODD.search(headline(entry))), (headline(entry), found)


def test_general_remedies_read_as_sentences(knowledge: Knowledge) -> None:
    for entry_id in knowledge.entries:
        written = knowledge.entries[entry_id].remedy
        for raw, remedy in zip(written, explain(entry_id, knowledge).entry.remedy, strict=True):
            if not placeholders(f"{raw.text}{raw.undo}{raw.expect}"):
                continue
            for text in (remedy.text, remedy.undo, remedy.expect):
                assert not ODD.search(text.replace("\n", " ")), (entry_id, text)
