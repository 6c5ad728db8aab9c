from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.units import count_text, parse_size, size_text, time_text


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
    ("time_ms", "text"), [(0.25, "0.25 ms"), (999, "999 ms"), (12_500, "12.5 s"), (250_000, "4 min 10 s")]
)
def test_time_text(time_ms: float, text: str) -> None:
    assert time_text(time_ms) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("42", 42),
        ("18G", 18 << 30),
        ("18 GiB", 18 << 30),
        ("18GB", 18 * 10**9),
        ("512mib", 512 << 20),
        ("1.5K", 1536),
        ("7B", 7),
    ],
)
def test_parse_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.text())
def test_parse_size_refuses_with_a_reason_or_returns_a_size(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_size(text) >= 0


@pytest.mark.parametrize("text", ["", "big", "-1", "1..5G", "1X", "G"])
def test_parse_size_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size; write"):
        parse_size(text)


def test_count_text() -> None:
    assert [count_text(n, "entry", "entries") for n in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
