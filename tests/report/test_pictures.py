from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.report import html, markdown, terminal
from rocmend.report.document import (
    Axis,
    Bar,
    Bars,
    Card,
    Cell,
    Device,
    Document,
    Host,
    Picture,
    Plot,
    Point,
    Range,
    Ranges,
    Section,
    Series,
    SeriesKind,
    Stack,
    Stacks,
    Tick,
    Tone,
    Topology,
    table,
)
from rocmend.report.pictures.draw import draw

SAVE_AREA = Bars((Bar("needed", 200, "200 B"), Bar("present", 150, "150 B, too small", Tone.ERROR)), "Save area")
CLOCK = Ranges((Range("Shader clock", 0, 2900, 725, "0 MHz", "2900 MHz", "725 MHz", Tone.WARNING),), "Clocks")
MEMORY = Stacks(
    (Stack("All memory", (Bar("VRAM", 1, "1 GiB"), Bar("GTT", 5, "5 GiB"), Bar("system", 2, "2 GiB"))),),
    (Bar("The model", 4, "4 GiB"),),
    "Memory",
)
NODES = Topology(
    tuple(
        Host(f"NUMA node {node}", tuple(Device(f"GPU {node * 5 + number}", "PCIe 5.0 x16") for number in range(5)))
        for node in range(2)
    ),
    "All linked by XGMI",
    "Links",
)

ROOFLINE = Plot(
    Axis("Arithmetic intensity", "FLOP/byte", log=True),
    Axis("Speed", "TFLOPS", log=True),
    (
        Series("bound", (Point(1, 0.25), Point(100, 25), Point(1000, 25)), SeriesKind.LIMIT),
        Series("hipBLASLt off", (Point(10, 2, "m=16", (1.9, 2.2)), Point(600, 20, "m=4096"))),
        Series("hipBLASLt on", (Point(600, 0, "nothing"), Point(10, 1, "m=16")), SeriesKind.POINTS),
    ),
    "Roofline",
)


def _printed(block: Picture, width: int = 80) -> str:
    stream = io.StringIO()
    terminal.render(Document("t", blocks=(block,)), stream, width=width)
    return stream.getvalue()


def test_lengths_are_to_scale_in_the_page_and_in_the_terminal() -> None:
    assert '<rect x="0%" width="75%" y="0" height="16" rx="2" class="fill error">' in draw(SAVE_AREA)
    needed, present = (line for line in _printed(SAVE_AREA).splitlines() if "█" in line)
    assert present.count("█") / needed.count("█") == 0.75
    assert present.startswith("present  ")
    assert present.endswith("150 B, too small")


def test_long_words_do_not_squeeze_the_bars() -> None:
    text = _printed(Bars((Bar("a label that needs a line of its own " * 2, 1, "1"),)), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert "█" * 58 in text


def test_a_value_stands_within_its_range() -> None:
    assert '<svg x="25%" width="1" height="16" overflow="visible">' in draw(CLOCK)
    line = next(line for line in _printed(CLOCK).splitlines() if "●" in line).strip()
    assert line.index("●") == pytest.approx(len(line) / 4, abs=1)
    assert "Shader clock: 725 MHz (0 MHz to 2900 MHz)" in _printed(CLOCK)


def test_parts_stand_end_to_end() -> None:
    drawn = draw(MEMORY)
    assert re.findall(r'x="([\d.]+)%" width="([\d.]+)%" y="0" height="24" rx="2" class="part', drawn) == [
        ("0", "12.5"),
        ("12.5", "62.5"),
        ("75", "25"),
    ]
    assert 'width="50%" y="0" height="8"' in drawn
    assert "█ VRAM 1 GiB, ▒ GTT 5 GiB, ▓ system 2 GiB" in _printed(MEMORY)


def test_devices_hang_on_their_hosts() -> None:
    drawn = draw(NODES)
    assert drawn.count("<line") == 8  # of the first row of each host; the second stands below
    assert drawn.count('class="device plain"') == 10
    text = _printed(NODES)
    assert text.index("NUMA node 0") < text.index("└─ GPU 4  PCIe 5.0 x16") < text.index("NUMA node 1")
    assert "| GPU 7 | NUMA node 1 | PCIe 5.0 x16 |" in markdown.render(Document("t", blocks=(NODES,)))


def test_what_stands_beside_a_section_in_a_page_stands_last_in_a_terminal() -> None:
    blocks = (Section("First", ()), Section("Beside", (SAVE_AREA, CLOCK), beside=True), Section("Then", ()))
    stream = io.StringIO()
    terminal.render(Document("t", blocks=blocks), stream, width=80, details=True)
    text = stream.getvalue()
    assert text.index("First") < text.index("Then") < text.index("Beside")
    page = html.render(Document("t", blocks=blocks))
    assert page.index(">First</h2>") < page.index(">Beside</h2>") < page.index(">Then</h2>")
    assert page.count('<div class="pictures"><figure') == 1


@pytest.mark.parametrize("block", [SAVE_AREA, CLOCK, MEMORY, NODES, ROOFLINE])
def test_a_picture_says_its_figures_to_those_who_do_not_see_it(block: Picture) -> None:
    page = html.render(Document("t", blocks=(block,)))
    assert re.search(r'<svg role="img" aria-label="[^"]+ [^"]*\d', page)
    assert "<summary>Figures as a table</summary>" in page
    assert f"<figcaption>{block.caption}</figcaption>" in page


def test_a_heat_map_links_what_failed_to_the_card_that_says_why() -> None:
    made = table(["", "bf16"], [["conv", Cell("hang 1/2", Tone.ERROR, "conv-bf16")]])
    heat = type(made)(made.columns, made.rows, "c", heat=True)
    page = html.render(Document("t", blocks=(heat, Card("It hangs", ref="conv-bf16"))))
    assert '<table class="heat">' in page
    assert '<td class="error"><a href="#conv-bf16">hang 1/2</a></td>' in page


NUMBERS = st.one_of(st.floats(), st.integers(-(2**70), 2**70).map(float))


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.integers(40, 110))
def test_any_numbers_are_drawn_inside_the_picture(values: list[float], width: int) -> None:
    bars = tuple(Bar(f"b{number}", value, "v") for number, value in enumerate(values))
    ranges = tuple(
        Range("r", low, high, value, "l", "h", "v")
        for low, high, value in zip(values, values[1:], values[2:], strict=False)
    )
    for block in (Bars(bars), Ranges(ranges), Stacks((Stack("s", bars),), bars)):
        drawn = draw(block)
        for x, wide in re.findall(r'x="([^"]*)%" width="([^"]*)%"', drawn):
            assert 0 <= float(x) <= 100
            assert 0 <= float(wide) <= 100.001 - float(x)
        assert max((len(line) for line in _printed(block, width).splitlines()), default=0) <= width


def _columns(text: str, mark: str) -> list[int]:
    return [line.index(mark) for line in text.splitlines() if mark in line and "hipBLASLt" not in line]


def test_equal_ratios_are_equal_distances_on_a_logarithmic_axis() -> None:
    points = tuple(Point(x, y) for x, y in ((1, 1), (10, 10), (100, 100)))
    log = Plot(Axis("x", log=True), Axis("y", log=True), (Series("s", points),))
    places = [float(x) for x in re.findall(r'<svg x="([\d.]+)%"', draw(log))]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.01)
    linear = Plot(Axis("x"), Axis("y"), (Series("s", points),))
    places = [float(x) for x in re.findall(r'<svg x="([\d.]+)%"', draw(linear))]
    assert (places[1] - 1.5) / (places[2] - 1.5) == pytest.approx(0.1, abs=0.01)  # it begins at 0


def test_series_differ_in_their_markers_and_a_limit_has_none() -> None:
    drawn = draw(ROOFLINE)
    assert len(re.findall(r"<svg x=[^>]*><title>hipBLASLt off: ", drawn)) == 2
    assert len(re.findall(r"<svg x=[^>]*><title>hipBLASLt on: ", drawn)) == 1  # 0 is no place on a logarithmic axis
    assert len(set(re.findall(r'<(?:circle|path)[^>]*class="(series-\d) marker', drawn))) == 2
    assert drawn.count("<circle") == 3  # two points and the legend: the first series is a circle, after a limit too
    assert drawn.count("bound limit") == 3  # two stretches and the legend
    assert drawn.count("whisker") == 1
    assert (drawn.count("series-0 line"), drawn.count("series-1 line")) == (2, 0)


def test_a_plot_in_a_terminal_has_its_points_in_place_and_its_values() -> None:
    text = _printed(ROOFLINE)
    assert "╌╌ bound   ● hipBLASLt off   ▲ hipBLASLt on" in text
    assert len(_columns(text, "●")) == 2
    assert _columns(text, "●")[0] > _columns(text, "●")[1]  # the faster one is above, and right of the other
    assert _columns(text, "▲") == [_columns(text, "●")[1]]
    assert "Arithmetic intensity (FLOP/byte)" in text
    assert re.search(r"^ +1 .* 1000", text, re.MULTILINE)


def test_the_table_of_a_plot_has_what_its_points_are() -> None:
    text = markdown.render(Document("t", blocks=(ROOFLINE,)))
    assert "| hipBLASLt off | m=16 | 10 | 2 | 1.9 to 2.2 |" in text
    sizes = Plot(
        Axis("Size", log=True, ticks=(Tick(4096, "4 KiB"),)), Axis("Speed", "GB/s"), (Series("s", (Point(4096, 1),)),)
    )
    assert "| s | 4 KiB | 1 |" in markdown.render(Document("t", blocks=(sizes,)))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=9), st.booleans(), st.integers(40, 110))
def test_any_points_are_drawn_inside_the_plot(values: list[tuple[float, float, float]], log: bool, width: int) -> None:
    points = tuple(Point(x, y, "p", (min(y, z), max(y, z))) for x, y, z in values)
    kinds = tuple(Series("s", points, kind) for kind in SeriesKind)
    block = Plot(Axis("x", log=log), Axis("y", log=log), kinds)
    drawn = draw(block)
    for x in re.findall(r'x[12]?="([^"]*)%"', drawn):
        assert 0 <= float(x) <= 100
    for y in re.findall(r' y[12]?="([^"%]*)"', drawn):
        assert 0 <= float(y) <= 310
    assert max(map(len, _printed(block, width).splitlines())) <= width


def test_an_interval_that_goes_on_beyond_the_plot_ends_in_an_arrow() -> None:
    whole = Plot(Axis("x"), Axis("y"), (Series("s", (Point(1, 2, "", (1.5, 2.5)), Point(2, 4))),))
    cut = Plot(Axis("x"), Axis("y"), (Series("s", (Point(1, 2, "", (1.5, 1e6)), Point(2, 4))),))
    assert "goes on to" not in draw(whole)
    assert draw(cut).count("goes on to 1e+06") == 1
