from __future__ import annotations

import datetime as dt
from typing import Any

from rocmend.core.records import Fact, Source
from rocmend.kb.entry import Entry, Kind, Status
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine


def make_machine(**facts: Any) -> Machine:
    """A machine in memory; ``__`` in a name stands for a dot."""
    keyed = {name.replace("__", "."): value for name, value in facts.items()}
    return Machine("box", "2026-01-01", {key: Fact(key, value, "test") for key, value in keyed.items()}, {})


def make_entry(entry_id: str, **fields: Any) -> Entry:
    """An active entry with one source."""
    day = dt.date(2026, 1, 1)
    given: dict[str, Any] = {"kind": Kind.SETTING, "status": Status.ACTIVE, "reviewed": day, "review_by": day} | fields
    source = (Source("A page", "https://example.org/page", "2026"),)
    return Entry(id=entry_id, title=entry_id, source=source, **given)


def make_knowledge(*entries: Entry) -> Knowledge:
    return Knowledge({entry.id: entry for entry in entries})
