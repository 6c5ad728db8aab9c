from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.units import (
    ModelSize,
    count_text,
    figure_text,
    parse_duration,
    parse_model_size,
    parse_size,
    share_text,
    size_text,
    time_text,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (16_624_124_723, "15.5 GiB"),
        (5 << 40, "5 TiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_size_text(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "0 ms"),
        (0.00117, "1.17 µs"),
        (0.25, "0.25 ms"),
        (999, "999 ms"),
        (12_500, "12.5 s"),
        (250_000, "4 min 10 s"),
    ],
)
def test_time_text(time_ms: float, text: str) -> None:
    assert time_text(time_ms) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.003, "0.3 %"), (0.41, "41 %"), (1.4, "140 %"), (-0.004, "-0.4 %")]
)
def test_share_text(share: float, text: str) -> None:
    assert share_text(share) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (8.4, "8.400"), (44.0, "44.00"), (392.84, "392.8"), (1199.4, "1,199"), (123_456.0, "123,500"),
     (0.00012345, "0.0001234"), (1.2e-6, "1.2e-06"), (0.0, "0.000"), (9_999.7, "10,000")],
)  # fmt: skip
def test_figure_text(value: float | None, text: str) -> None:
    assert figure_text(value) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("42B", 42),
        ("18 GiB", 18 << 30),
        ("18GB", 18 * 10**9),
        (" 512mib ", 512 << 20),
        ("1.5KiB", 1536),
        ("0.3GB", 300_000_000),
        ("2tb", 2 * 10**12),
    ],
)
def test_parse_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("250ms", 0.25), ("30s", 30), ("5min", 300), ("5m", 300), ("1h30min", 5400), ("1.5h", 5400), ("7 d", 604_800)],
)
def test_parse_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "size", "said"),
    [
        ("18GB", 18 * 10**9, "18GB"),
        ("18GiB", 18 << 30, "18GiB"),
        ("8B", 16 * 10**9, "8 billion parameters at 16 bits each, which is assumed: 14.9 GiB of weights"),
        ("8B@4bit", 4 * 10**9, "8 billion parameters at 4 bits each: 3.73 GiB of weights"),
        ("0.6b @ 4.5 bits", 337_500_000, "0.6 billion parameters at 4.5 bits each: 322 MiB of weights"),
    ],
)
def test_parse_model_size_says_what_it_assumes(text: str, size: int, said: str) -> None:
    assert parse_model_size(text) == (size, said)


@pytest.mark.parametrize("parse", [parse_size, parse_duration, parse_model_size])
@given(st.one_of(st.text(), st.from_regex(r"[0-9.]{1,20} ?[KMGTkmgtiBbsmhdwn@ ]{0,6}", fullmatch=True)))
def test_what_is_read_is_positive_and_what_is_refused_has_a_reason(parse: Callable[[str], object], text: str) -> None:
    try:
        value = parse(text)
    except ValueError:
        pass  # what the reasons say is tested below
    else:
        number = value.size_bytes if isinstance(value, ModelSize) else value
        assert isinstance(number, int | float)
        assert 0 < number < 1e300


@given(st.integers(1, 10**6), st.sampled_from(["B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_size(f"{number}{unit}") == parse_size(f"{number} {unit.lower()}") == number * parse_size(f"1{unit}")


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "min", "h", "d", "w"]))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert parse_duration(f"{number}{unit}") == pytest.approx(number * parse_duration(f"1 {unit}"))


@pytest.mark.parametrize("text", ["18", "18.5", " 7 "])
def test_a_number_alone_has_no_unit(text: str) -> None:
    for parse, form in ((parse_size, "18GiB"), (parse_duration, "5min"), (parse_model_size, "8B@4bit")):
        with pytest.raises(ValueError, match=f"has no unit; write .*{form}"):
            parse(text)


@pytest.mark.parametrize("text", ["", "big", "-1GB", "1..5GB", "1X", "G", "18G", "s", "5 years", "1h-3min", "٣s"])
def test_what_is_neither_is_told_what_to_write(text: str) -> None:
    for parse in (parse_size, parse_model_size):
        with pytest.raises(ValueError, match=r"is not a size( of a model)?; write 18GB"):
            parse(text)
    with pytest.raises(ValueError, match="is not a duration; write 30s, 5min"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0GB", "0B", "0.0001B"])
def test_no_bytes_are_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="less than a byte"):
        parse_size(text)


def test_no_time_is_no_duration() -> None:
    with pytest.raises(ValueError, match="no time at all"):
        parse_duration("0s")


def test_count_text() -> None:
    assert [count_text(n, "entry", "entries") for n in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
