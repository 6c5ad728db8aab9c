from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.report import html, markdown, terminal
from rocmend.report.document import Document, Span, Timeline, TimelineRow, Tone

TIMELINE = Timeline(
    (
        TimelineRow("baseline", (Span("load", 0, 2), Span("upload", 2, 10, Tone.ERROR)), "hang after upload"),
        TimelineRow("sdma-off | 2", (Span("load", 0, 1.5), Span("reserve", 1.5, 5, Tone.ERROR)), "hang"),
        TimelineRow("never ran", (), "not run"),
    ),
    "Phases of each trial",
)


def _printed(timeline: Timeline, width: int = 80) -> str:
    stream = io.StringIO()
    terminal.render(Document("t", blocks=(timeline,)), stream, width=width)
    return stream.getvalue()


def test_terminal_bars_are_to_scale_and_named() -> None:
    text = _printed(TIMELINE)
    bars = [line for line in text.splitlines() if "█" * 3 in line]
    assert [line.count("█") for line in bars] == [16, 12]
    assert [line.count("▒") for line in bars] == [62, 27]
    assert "baseline: hang after upload" in text
    assert "▒ upload 8 s" in text
    assert "never ran: not run" in text


def test_markdown_is_a_table_with_a_row_for_each_span() -> None:
    text = markdown.render(Document("t", blocks=(TIMELINE,)))
    assert "| baseline | upload | 2 | 8 | hang after upload |" in text
    assert "| sdma-off \\| 2 | load | 0 | 1.5 |  |" in text
    assert "| never ran |  |  |  | not run |" in text


def test_html_places_spans_and_says_them_in_words() -> None:
    page = html.render(Document("t", blocks=(TIMELINE,)))
    assert '<svg x="20%" width="80%" height="26"><title>upload 8 s</title>' in page
    assert '<text x="7" y="17" class="error">upload 8 s</text>' in page
    assert re.search(r">baseline</th><td [^>]*>upload</td><td [^>]*>2</td>", page)
    assert "<figcaption>Phases of each trial</figcaption>" in page


def test_html_escapes_what_a_program_printed() -> None:
    bad = '<img src=x onerror=alert(1)>"'
    page = html.render(Document("t", blocks=(Timeline((TimelineRow(bad, (Span(bad, 0, 1),), bad),), bad),)))
    assert "<img" not in page


@given(
    st.lists(st.floats(0, 1e7), max_size=60),
    st.integers(40, 110),
    st.lists(st.sampled_from(list(Tone)), min_size=1, max_size=3),
)
def test_any_timeline_fits_the_terminal(lengths: list[float], width: int, tones: list[Tone]) -> None:
    spans, at = [], 0.0
    for number, length in enumerate(lengths):
        spans.append(Span(f"p{number}", at, at + length, tones[number % len(tones)]))
        at += length
    text = _printed(Timeline((TimelineRow("row", tuple(spans)),)), width)
    bars = [line for line in text.splitlines() if re.fullmatch(r" *[█▒ ]*[█▒]", line)]
    assert all(len(line) <= width for line in text.splitlines())
    if 0 < len(spans) <= 20:
        assert len(bars) == 1
        marks = re.findall(r"█+|▒+", bars[0])
        assert len(marks) == len(spans)


@pytest.mark.parametrize("rows", [(), (TimelineRow("empty", ()),), (TimelineRow("zero", (Span("a", 0, 0),)),)])
def test_a_timeline_of_no_length_renders(rows: tuple[TimelineRow, ...]) -> None:
    document = Document("t", blocks=(Timeline(rows),))
    assert markdown.render(document)
    assert html.render(document)
    assert _printed(Timeline(rows))
