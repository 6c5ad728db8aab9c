"""How well the knowledge is found: pasted messages and problems of real threads (``kb_recall.toml``).

Prints how many find one of the entries that explain them first and all that belong to them among the first three, each
that does not, and the time that a search takes. Texts about something else are to find nothing.

    python benchmarks/kb_recall.py
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rocmend.kb.load import load_entries
from rocmend.kb.search import SearchIndex

DATA = Path(__file__).with_suffix(".toml")


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text, where it stands, and the entries that are to be found: one of ``first`` first, ``also`` in the top 3."""

    text: str
    source: str = ""
    first: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them, by kind."""

    message: tuple[Case, ...]
    problem: tuple[Case, ...]
    nothing: tuple[Case, ...]


class Recall(msgspec.Struct, frozen=True):
    """How many of some cases were found.

    Attributes:
        first: Share of those whose first entry is right.
        third: Share of those that have all in the first three.
        missed: A line for each that has not.
    """

    first: float
    third: float
    missed: tuple[str, ...]


def cases() -> Cases:
    """Return the cases."""
    return msgspec.toml.decode(DATA.read_bytes(), type=Cases)


def recall(index: SearchIndex, wanted: Iterable[Case]) -> Recall:
    """Return how many of some cases are found."""
    first, third, missed, count = 0, 0, [], 0
    for case in wanted:
        count += 1
        found = [hit.entry.id for hit in index.search(case.text)[:3]]
        at_first = found[:1] and found[0] in case.first
        in_three = bool(set(found) & set(case.first)) and set(case.also) <= set(found)
        first += bool(at_first)
        third += in_three
        if not (at_first and in_three):
            mark = "    " if in_three else "not in three"
            missed.append(f"{mark} {case.text[:70]!r}: wanted {case.first}, {case.also}; found {found}")
    return Recall(first / count, third / count, tuple(missed))


def main() -> None:
    """Print the recall."""
    begin = time.process_time()
    index = SearchIndex(load_entries().current())
    built_s = time.process_time() - begin
    known = cases()
    begin = time.process_time()
    for name in ("message", "problem"):
        found = recall(index, getattr(known, name))
        print(f"{name}s: {len(getattr(known, name))}, top 1 {found.first:.1%}, top 3 {found.third:.1%}")
        print("\n".join(found.missed))
    wrong = [(case.text, index.search(case.text)[0].entry.id) for case in known.nothing if index.search(case.text)]
    print(f"nothing: {len(known.nothing)} texts, {len(wrong)} find something {wrong}")
    each_ms = (time.process_time() - begin) * 1000 / (len(known.message) + len(known.problem) + len(known.nothing))
    print(f"the index takes {built_s * 1000:.0f} ms, a search {each_ms:.1f} ms")


if __name__ == "__main__":
    main()
