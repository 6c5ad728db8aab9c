"""How well the knowledge is found: pasted messages and problems of real threads.

``kb_recall.toml`` is what ranking, synonyms and entries were tuned on. ``kb_recall_held_out.toml`` is not: the entries
that must be found were written down before any search, and of what it misses only the figures are printed, so that
nobody tunes on it (``--missed`` prints it all the same: move what you mend because of it into the tuned part).

Prints how many find one of the entries that explain them first and all that belong to them among the first three, each
of the tuned part that does not, and the time that a search takes. Texts about something else are to find nothing. Where
no entry exists, a held-out text counts as missed.

    python benchmarks/kb_recall.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rocmend.kb.load import load_entries
from rocmend.kb.search import SearchIndex

DATA = Path(__file__).with_suffix(".toml")
HELD_OUT = DATA.with_stem("kb_recall_held_out")


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text, where it stands, and the entries that are to be found: one of ``first`` first, ``also`` in the top 3.

    ``lacking`` says what an entry would have to say where there is none.
    """

    text: str
    source: str = ""
    first: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lacking: str = ""


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them, by kind."""

    message: tuple[Case, ...]
    problem: tuple[Case, ...]
    nothing: tuple[Case, ...] = ()


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


def cases(path: Path = DATA) -> Cases:
    """Return the cases of a file."""
    return msgspec.toml.decode(path.read_bytes(), type=Cases)


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
    unseen = cases(HELD_OUT)
    for name in ("message", "problem"):
        found, asked = recall(index, getattr(unseen, name)), getattr(unseen, name)
        without = sum(not case.first for case in asked)
        print(f"held out, {name}s: {len(asked)} ({without} without an entry), ", end="")
        print(f"top 1 {found.first:.1%}, top 3 {found.third:.1%}")
        if "--missed" in sys.argv:
            print("\n".join(found.missed))
    known = cases()
    begin = time.process_time()
    for name in ("message", "problem"):
        found = recall(index, getattr(known, name))
        print(f"tuned, {name}s: {len(getattr(known, name))}, top 1 {found.first:.1%}, top 3 {found.third:.1%}")
        print("\n".join(found.missed))
    wrong = [(case.text, index.search(case.text)[0].entry.id) for case in known.nothing if index.search(case.text)]
    print(f"nothing: {len(known.nothing)} texts, {len(wrong)} find something {wrong}")
    each_ms = (time.process_time() - begin) * 1000 / (len(known.message) + len(known.problem) + len(known.nothing))
    print(f"the index takes {built_s * 1000:.0f} ms, a search {each_ms:.1f} ms")


if __name__ == "__main__":
    main()
