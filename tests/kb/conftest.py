"""Builders for machines and entries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.records import Fact, Gap, Remedy, Source
from rocmend.kb.entry import Entry, Kind, Status
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine

TODAY = dt.date(2026, 11, 21)


def build_machine(facts: dict[str, Any], gaps: dict[str, str] | None = None) -> Machine:
    return Machine(
        name="bench",
        captured_at="2026-11-21T00:00:00Z",
        facts={key: Fact(key, value, "test") for key, value in facts.items()},
        gaps={key: Gap(key, reason) for key, reason in (gaps or {}).items()},
    )


def build_entry(**fields: Any) -> Entry:
    defaults: dict[str, Any] = {
        "id": "an-entry",
        "title": "A title",
        "kind": Kind.ISSUE,
        "status": Status.ACTIVE,
        "reviewed": TODAY,
        "review_by": dt.date(2027, 5, 1),
        "source": (Source("A document", "https://example.org/1"),),
        "topic": "kernel",
        "body": "Because.",
        "remedy": (Remedy("Do this."),),
    }
    return Entry(**(defaults | fields))


def build_knowledge(*entries: Entry) -> Knowledge:
    return Knowledge({entry.id: entry for entry in entries}, (), {})


@pytest.fixture(scope="session")
def today() -> dt.date:
    return TODAY


@pytest.fixture(scope="session")
def machine_of() -> Callable[..., Machine]:
    return build_machine


@pytest.fixture(scope="session")
def entry_of() -> Callable[..., Entry]:
    return build_entry


@pytest.fixture(scope="session")
def knowledge_of() -> Callable[..., Knowledge]:
    return build_knowledge


ENTRY_TEXT = """+++
id = "{id}"
title = "A title"
kind = "issue"
status = "active"
reviewed = 2026-11-21
review_by = 2027-05-01

[[source]]
title = "A document"
url = "https://example.org/1"

[[remedy]]
text = "Do this."
+++

Because.
"""


@pytest.fixture
def write_entry(tmp_path: Path) -> Callable[..., Path]:
    def write(entry_id: str, text: str = ENTRY_TEXT, topic: str = "kernel") -> Path:
        path = tmp_path / topic / f"{entry_id}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("{id}", entry_id), encoding="utf-8")
        return path

    return write
