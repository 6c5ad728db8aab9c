from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.store.ids import IdMaker, is_id, lowest_id, utc_time

TIMES = st.datetimes().map(lambda time: time.replace(tzinfo=dt.UTC))


@given(TIMES, TIMES)
def test_ids_sort_as_their_times_do(one: dt.datetime, other: dt.datetime) -> None:
    first, second = IdMaker().make(one), IdMaker().make(other)
    assert is_id(first)
    cut = [time.replace(microsecond=time.microsecond // 1000 * 1000) for time in (one, other)]
    if cut[0] != cut[1]:
        assert (first < second) == (cut[0] < cut[1])
    assert lowest_id(one) <= first
    assert (lowest_id(other) <= first) == (cut[1] <= cut[0])


def test_ids_of_one_millisecond_ascend_and_differ() -> None:
    maker, time = IdMaker(), dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    ids = [maker.make(time) for _ in range(20_000)]
    assert ids == sorted(set(ids))


def test_makers_do_not_agree() -> None:
    time = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    assert len({IdMaker().make(time) for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00:00Z", "20260131-120000-00"),
        ("2026-01-31T12:00:00", "20260131-120000-00"),
        ("2026-01-31T12:00:00.999+05:30", "20260131-063000-z7"),
        ("2026-01-31", "20260131-000000-00"),
        ("0001-01-01T00:00:00Z", "00010101-000000-00"),
    ],
)
def test_times_are_utc(text: str, expected: str) -> None:
    assert lowest_id(utc_time(text, "time")) == expected


@pytest.mark.parametrize("text", ["", "noon", "0001-01-01T00:00:00+14:00", "2026-13-01", "1700000000.5"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="is not an ISO time"):
        utc_time(text, "started_at")


@pytest.mark.parametrize("text", ["", "20260131-120000", "20260131-120000-0000000u", "20260131-120000-000000000"])
def test_what_is_no_id(text: str) -> None:
    assert not is_id(text)
