"""Entries for a part of an error line, as people quote it: ``ring timeout``, ``ErrorDeviceLost``."""

from __future__ import annotations

import re

from rocmend.core.signatures import Certainty, Signature
from rocmend.kb.entry import Entry
from rocmend.kb.errors import Sighting
from rocmend.kb.general import headline
from rocmend.kb.load import Knowledge
from rocmend.kb.search import words_in

_LONGEST_BYTES = 200
"""A longer text is a line of its own, not a part of one."""
_MOST = 5
"""Words that more entries have say nothing."""
_SEVERAL = 2
_WORD = re.compile(r"[^\W_]+")


def quoted(text: str, knowledge: Knowledge) -> tuple[Sighting, ...]:
    """Return the entries whose signature lines hold all words of a short text, the surest first.

    Where no line holds them all, those count whose title, tags and lines together hold all its telling words.

    Args:
        text: What a person pasted, in which no signature was found.
        knowledge: The entries; those that are archived are left out.
    """
    text = text.strip()
    if len(text) > _LONGEST_BYTES or "\n" in text:
        return ()
    entries = [entry for entry in knowledge.current().entries.values() if entry.signature]
    found = [one for entry in entries if (one := _in_line(text, entry)) is not None]
    if not found:
        found = [one for entry in entries if (one := _in_entry(text, entry)) is not None]
    likely = [one for one in found if one.certainty is Certainty.LIKELY]
    found = likely or found
    return tuple(sorted(found, key=lambda one: one.order)) if len(found) <= _MOST else ()


def _in_line(text: str, entry: Entry) -> Sighting | None:
    """Return what a text is where one line holds all its words: likely where they stand there as they are."""
    words = _WORD.findall(text.lower())
    if not set(words_in(text)) - {"runtimeerror"}:
        return None
    best: Sighting | None = None
    if text.lower() in entry.tags and len(words) >= _SEVERAL:
        best = _sighting(entry, entry.signature[0], text, Certainty.LIKELY)
    for signature in entry.signature:
        for line in signature.lines:
            there = _WORD.findall(line.text.lower())
            if not set(words) <= set(there):
                continue
            whole = f" {' '.join(words)} " in f" {' '.join(there)} "
            sure = whole and signature.certainty is not Certainty.POSSIBLE
            made = _sighting(entry, signature, text, Certainty.LIKELY if sure else Certainty.POSSIBLE)
            best = made if best is None or made.order < best.order else best
    return best


def _in_entry(text: str, entry: Entry) -> Sighting | None:
    """Return what a text is where an entry's title, tags and lines hold all its telling words."""
    words = words_in(text)
    lines = [line.text for signature in entry.signature for line in signature.lines]
    there = set(_WORD.findall(" ".join((headline(entry), *entry.tags, *lines)).lower()))
    if len(words) < _SEVERAL or not set(words) <= there:
        return None
    return _sighting(entry, entry.signature[0], text, Certainty.POSSIBLE)


def _sighting(entry: Entry, signature: Signature, text: str, certainty: Certainty) -> Sighting:
    return Sighting(entry.id, certainty, signature.log, text, 1, signature.meaning, rank=signature.rank, part=True)
