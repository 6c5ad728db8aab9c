from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.suggest import did_you_mean, misspelled, nearest, unknown

ENTRIES = [
    "gfx1151-idle-clocks",
    "gfx1151-cwsr-enable-0-pending",
    "gfx1151-cwsr-save-area-too-small",
    "gfx1151-peak-fp16",
    "kernel-cwsr-disabled",
]
NAMES = st.text("abcdefgh-_", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "known", "first"),
    [
        ("gfx1151-cwsr-save", ENTRIES, "gfx1151-cwsr-save-area-too-small"),
        ("gfx1151_CWSR save", ENTRIES, "gfx1151-cwsr-save-area-too-small"),
        ("gfx1151-peek-fp16", ENTRIES, "gfx1151-peak-fp16"),
        ("save-area-cwsr", ENTRIES, "gfx1151-cwsr-save-area-too-small"),
        ("clokcs-idle", ENTRIES, "gfx1151-idle-clocks"),
        ("rms_nrm", ["add_rms_norm", "layer_norm", "rms_norm"], "rms_norm"),
        ("norm", ["rms_norm", "softmax"], "rms_norm"),
        ("docter", ["doctor", "port"], "doctor"),
        ("--mdel-size", ["--machine", "--model-size"], "--model-size"),
    ],
)
def test_what_was_meant_comes_first(name: str, known: list[str], first: str) -> None:
    assert nearest(name, known)[0] == first


def test_what_begins_so_comes_before_what_is_a_few_edits_away() -> None:
    assert nearest("gfx115", ["gfx1150", "gfx1151", "gfx15"]) == ["gfx1150", "gfx1151", "gfx15"]


@pytest.mark.parametrize("name", ["", "  ", "-", "unrelated-words", "q" * 100_000])
def test_nothing_is_suggested_for_what_is_near_to_nothing(name: str) -> None:
    assert did_you_mean(name, ENTRIES) == ""


def test_a_short_word_that_is_one_letter_off_is_another_word() -> None:
    assert did_you_mean("nope", ["tools-node-scraper", "access-render-node-denied"]) == ""


def test_a_few_are_suggested_of_many() -> None:
    assert did_you_mean("op", [f"op{number}" for number in range(30)]) == "Did you mean op0, op1, op2, op3 or op4?"


@given(NAMES, st.lists(NAMES, max_size=8))
def test_suggestions_are_known_names_and_an_own_name_is_the_first(name: str, known: list[str]) -> None:
    assert set(nearest(name, known)) <= set(known)
    if name.strip("-_"):
        assert (
            nearest(name, [*known, name])[0].replace("_", "-").strip("-").startswith(name.replace("_", "-").strip("-"))
        )


@given(NAMES.filter(lambda name: len(re.sub("[-_]+", "-", name).strip("-")) > 3), st.data())
def test_one_edit_is_misspelled(name: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(name)))
    assert misspelled(f"{name[:place]}z{name[place:]}", [name, "quite-another-name"]) == name


def test_what_only_begins_so_is_not_misspelled() -> None:
    assert misspelled("amd", ["amdgpu", "amdttm"]) == ""


def test_the_error_names_what_there_is() -> None:
    assert unknown("x", "op", "rms_nrm", ["rms_norm"], listed="rocmend kernels list").next_step == (
        "Did you mean rms_norm? `rocmend kernels list` lists all of them."
    )
    assert unknown("x", "table", "q", ["a", "b"]).next_step == "There are: a, b."
    assert unknown("x", "trial", "q", []).next_step == "There are none."
    assert unknown("x", "op", "q", [f"{number}" for number in range(30)]).next_step.startswith("Some of them: 0, 1,")
