"""Edits: what is applied is what was asked for, and contradictions are refused."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import UnitError
from rocmend.port.edits import applied, compatible
from rocmend.port.records import Edit


@st.composite
def sources(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    """Bytes, and edits that do not touch each other."""
    pieces = draw(
        st.lists(st.tuples(st.binary(max_size=6), st.binary(min_size=1, max_size=4), st.binary(max_size=5)), max_size=6)
    )
    data, edits = b"", []
    for kept, gone, text in pieces:
        data += kept
        edits.append(Edit(len(data), len(data) + len(gone), text))
        data += gone
    return data + draw(st.binary(max_size=4)), edits


@given(made=sources(), order=st.randoms(use_true_random=False))
def test_edits_are_made_where_they_are_in_any_order(made: tuple[bytes, list[Edit]], order: Random) -> None:
    data, edits = made
    expected = bytearray(data)
    for edit in sorted(edits, reverse=True):
        expected[edit.start : edit.end] = edit.text
    shuffled = [*edits, *edits]
    order.shuffle(shuffled)
    assert applied(data, shuffled) == bytes(expected)


@given(made=sources())
def test_what_is_outside_of_edits_stays(made: tuple[bytes, list[Edit]]) -> None:
    data, edits = made
    kept = b"".join(
        data[one.end : other.start]
        for one, other in zip([Edit(0, 0, b""), *edits], [*edits, Edit(len(data), len(data), b"")], strict=True)
    )
    assert applied(data, [Edit(edit.start, edit.end, b"") for edit in edits]) == kept


@given(made=sources(), pick=st.integers(0, 5), text=st.binary(max_size=3))
def test_two_ways_to_change_the_same_bytes_are_refused(made: tuple[bytes, list[Edit]], pick: int, text: bytes) -> None:
    data, edits = made
    if not edits:
        assert applied(data, []) == data
        return
    edit = edits[pick % len(edits)]
    other = Edit(edit.start, edit.end, edit.text + text + b"x")
    with pytest.raises(UnitError, match="overlap"):
        compatible([*edits, other])


def test_edits_that_overlap_are_refused() -> None:
    with pytest.raises(UnitError, match="overlap at 2"):
        compatible([Edit(0, 3, b"a"), Edit(2, 4, b"b")])
    with pytest.raises(UnitError, match="overlap at 1"):
        compatible([Edit(0, 3, b"a"), Edit(1, 1, b"within")])


def test_insertions_beside_a_change_are_made() -> None:
    assert applied(b"abc", [Edit(1, 1, b"<"), Edit(1, 2, b"B"), Edit(2, 2, b">")]) == b"a<B>c"
