"""What is checked of the table of indexes and of the ways to install that come from it; see RULES for the codes."""

from __future__ import annotations

from collections.abc import Callable

from rocmend.kb.entry import Entry, Status
from rocmend.kb.indexes import MAX_AGE_DAYS
from rocmend.kb.rules import Context, Findings

_PINS = ("==", "@", ".whl")


def check_indexes(context: Context) -> Findings:
    """Yield what is wrong with the rows of the table, and rows that are to be read again."""
    rows = context.knowledge.indexes
    for name, row in rows.items():
        if not row.source:
            yield "KB038", f"{name}: no source"
        if not row.url.startswith("https://"):
            yield "KB038", f"{name}: {row.url!r} is not a web address"
        for target in row.targets:
            if target not in context.targets:
                yield "KB038", f"{name}: {target!r} is not a gfx target"
        if row.ended is not None and not row.successor:
            yield "KB038", f"{name}: it has ended, and no successor is named"
        for other in filter(None, (row.successor, row.replaces)):
            if other not in rows:
                yield "KB038", f"{name}: {other!r} is no row of the table"
        if row.is_due(context.today):
            age = row.age_days(context.today)
            yield "KB039", f"{name}: read {age} days ago ({row.read}); read its sources again after {MAX_AGE_DAYS}"


def check_ended(entry: Entry, context: Context) -> Findings:
    """Yield ways to install that take the newest build of an index that gets none."""
    if entry.status is not Status.ACTIVE:
        return
    for install in entry.install:
        for name, row in context.knowledge.indexes.items():
            if row.ended is None or (name != install.index and row.url not in install.command):
                continue
            if not any(pin in install.command for pin in _PINS):
                yield "KB040", f"install {install.package}: {row.url} ended on {row.ended}; see {row.successor!r}"


INDEX_CHECKS: tuple[Callable[[Entry, Context], Findings], ...] = (check_ended,)
