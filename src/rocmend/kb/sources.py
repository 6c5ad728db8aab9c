"""Who the knowledge comes from."""

from __future__ import annotations

import msgspec

from rocmend.core.records import Source
from rocmend.kb.load import Knowledge


class Citation(msgspec.Struct, frozen=True):
    """A source and the entries that cite it.

    Attributes:
        source: As the first of the entries states it.
        entries: Ids of all that cite it.
    """

    source: Source
    entries: tuple[str, ...]


def list_sources(knowledge: Knowledge) -> tuple[Citation, ...]:
    """Return every source with the entries that cite it, by address.

    Sources with the same address are one source; those without (measurements of ours) are told apart by their title.
    """
    sources: dict[str, Source] = {}
    cited: dict[str, list[str]] = {}
    for entry in knowledge.entries.values():
        for source in entry.source:
            key = source.url or source.title
            sources.setdefault(key, source)
            ids = cited.setdefault(key, [])
            if entry.id not in ids:
                ids.append(entry.id)
    return tuple(Citation(sources[key], tuple(cited[key])) for key in sorted(sources))
