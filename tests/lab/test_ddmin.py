from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.lab.ddmin import ddmin


@given(st.integers(1, 12), st.data())
def test_finds_the_needed_items_exactly_where_more_never_hurts(size: int, data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.integers(0, size - 1)))
    assert set(ddmin(range(size), lambda part: needed <= set(part))) == needed


@given(st.integers(1, 8), st.data())
def test_is_1_minimal_for_any_predicate(size: int, data: st.DataObject) -> None:
    known: dict[frozenset[int], bool] = {}
    asked: list[tuple[int, ...]] = []

    def effect(part: tuple[int, ...]) -> bool:
        asked.append(part)
        key = frozenset(part)
        if key not in known:
            known[key] = len(key) == size or data.draw(st.booleans())
        return known[key]

    found = ddmin(range(size), effect)
    assert effect(found)
    asked.pop()
    assert len(asked) == len(set(asked))
    for item in found:
        assert not effect(tuple(other for other in found if other != item))


def test_refuses_items_that_have_no_effect() -> None:
    with pytest.raises(ValueError, match="do not have"):
        ddmin((1, 2), lambda _: False)


def test_nothing_is_needed_where_nothing_suffices() -> None:
    assert ddmin("abc", lambda _: True) == ()
    assert ddmin((), lambda _: True) == ()
