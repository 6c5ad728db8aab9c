"""Finding entries by words."""

from __future__ import annotations

import re

import msgspec

from rocmend.kb.entry import Entry
from rocmend.kb.load import Knowledge

WEIGHTS = {"id": 8, "title": 8, "tags": 6, "topic": 3, "scope": 3, "sources": 1, "body": 1}
"""What a word counts for in each part of an entry."""
MAX_BODY_COUNT = 5
"""A word that is repeated more often than this in a text counts no more."""
MAX_WORDS = 20

_WORD = re.compile(r"[a-z0-9]+(?:[._][a-z0-9]+)*")


class Hit(msgspec.Struct, frozen=True):
    """An entry that was found.

    Attributes:
        entry: The entry.
        score: Sum over the words and the parts they were found in; see WEIGHTS.
        found: Where: ``cwsr: title, tags``.
    """

    entry: Entry
    score: float
    found: tuple[str, ...]


def search(knowledge: Knowledge, query: str, *, limit: int = 20) -> tuple[Hit, ...]:
    """Return the entries in which the words of a query occur, best first.

    An entry must hold every word; where none does, those with the most words are returned. A word counts in each part
    of the entry by WEIGHTS, in full where it stands alone and by half where a longer word begins with it.

    Args:
        knowledge: The entries.
        query: Words; case and punctuation do not matter.
        limit: Most hits to return.
    """
    words = words_in(query)
    if not words:
        return ()
    scored = [(_score(_parts(entry), words), entry) for entry in knowledge.entries.values()]
    most = max((len(found) for (_, found), _ in scored), default=0)
    hits = [Hit(entry, score, found) for (score, found), entry in scored if found and len(found) == most]
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.entry.id))[:limit])


def words_in(query: str) -> tuple[str, ...]:
    """Return the words that are looked for; empty where there are none."""
    return tuple(dict.fromkeys(_WORD.findall(query.lower())))[:MAX_WORDS]


def _parts(entry: Entry) -> dict[str, list[str]]:
    scope = entry.scope
    texts = {
        "id": entry.id,
        "title": entry.title,
        "tags": " ".join(entry.tags),
        "topic": f"{entry.topic} {entry.kind.value}",
        "scope": " ".join((*scope.gfx, *scope.package, *scope.workload, *scope.os)),
        "sources": " ".join(source.title for source in entry.source),
        "body": entry.body,
    }
    return {part: _split(text.lower()) for part, text in texts.items()}


def _split(text: str) -> list[str]:
    """Return a text's words, and the pieces of compound ones: HSA_ENABLE_SDMA is also found by sdma."""
    words = _WORD.findall(text)
    return words + [piece for word in words if "_" in word for piece in word.split("_")]


def _score(parts: dict[str, list[str]], words: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    total = 0.0
    found: list[str] = []
    for word in words:
        places: list[str] = []
        for part, weight in WEIGHTS.items():
            whole = parts[part].count(word)
            begun = sum(other.startswith(word) for other in parts[part]) - whole
            count = min(whole + begun / 2, MAX_BODY_COUNT if part == "body" else 1)
            if count:
                total += weight * count
                places.append(part)
        if places:
            found.append(f"{word}: {', '.join(places)}")
    return total, tuple(found)
