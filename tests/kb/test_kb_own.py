"""What rocmend printed is told from errors: no error as it is printed is taken for a sentence of an entry."""

from __future__ import annotations

import pytest
from benchmarks.kb_recall import cases

from rocmend.kb.load import load_entries
from rocmend.kb.own import OwnSentences, Place, Reports

KNOWN = load_entries()
OWN = OwnSentences(KNOWN)


def test_no_error_is_taken_for_a_sentence() -> None:
    lines = {line.text for entry in KNOWN.entries.values() for one in entry.signature for line in one.lines}
    lines |= {line for case in cases().message for line in case.text.split("\n")}
    assert len(lines) > 200
    assert [line for line in lines if OWN.holds(line)] == []


def test_sentences_are_known_whole_and_in_part() -> None:
    for entry in KNOWN.entries.values():
        for line in entry.body.split("\n"):
            if len(line.split()) >= 15 and '"' not in line and "`" not in line:
                assert OWN.holds(line), line


REPORT = (
    (b"before\n", Place.OUTSIDE),
    (b"2 known errors in 9 lines.\n", Place.OWN),
    (b"words\n", Place.OWN),
    (b"    HIP error\n", Place.QUOTED),
    (b"`rocmend kb show ID` prints an entry.\n", Place.OUTSIDE),
    (b"after\n", Place.OUTSIDE),
)


@pytest.mark.parametrize("blocks", [1, 2, len(REPORT)])
def test_where_a_line_of_a_report_stands(blocks: int) -> None:
    reports = Reports()
    size = -(-len(REPORT) // blocks)
    for first in range(0, len(REPORT), size):
        lines = REPORT[first : first + size]
        reports.take(b"".join(line for line, _ in lines))
        offset = 0
        for line, place in lines:
            assert reports.place(offset) is place, line
            offset += len(line)
