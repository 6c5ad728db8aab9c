"""Builders for machines and entries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from rocmend.core.records import CollectorRun, Fact, Gap, Remedy, Severity, Source
from rocmend.kb.entry import Entry, Kind, Status
from rocmend.kb.load import Knowledge, LoadProblem
from rocmend.machine.facts import Machine


def build_machine(
    facts: dict[str, Any], gaps: dict[str, str] | None = None, collectors: tuple[CollectorRun, ...] = ()
) -> Machine:
    return Machine(
        name="bench",
        captured_at="2026-11-21T00:00:00Z",
        facts={key: Fact(key, value, f"/sys/{key}") for key, value in facts.items()},
        gaps={key: Gap(key, reason) for key, reason in (gaps or {}).items()},
        collectors=collectors,
    )


def build_finding_entry(entry_id: str, when: str, **fields: Any) -> Entry:
    defaults: dict[str, Any] = {
        "title": f"Title of {entry_id}",
        "kind": Kind.ISSUE,
        "status": Status.ACTIVE,
        "reviewed": dt.date(2026, 11, 21),
        "review_by": dt.date(2027, 5, 1),
        "source": (Source("A document", "https://example.org/1"),),
        "severity": Severity.WARNING,
        "subject": "kernel",
        "remedy": (Remedy("Do it."),),
        "topic": "kernel",
        "body": "Because.",
    }
    return Entry(id=entry_id, when=when, **(defaults | fields))


def build_knowledge(*entries: Entry, problems: tuple[LoadProblem, ...] = ()) -> Knowledge:
    return Knowledge({entry.id: entry for entry in entries}, problems, {})


@pytest.fixture
def machine_of() -> Callable[..., Machine]:
    return build_machine


@pytest.fixture
def finding_of() -> Callable[..., Entry]:
    return build_finding_entry


@pytest.fixture
def knowledge_of() -> Callable[..., Knowledge]:
    return build_knowledge
