"""The names that people use for their GPU lead to its gfx target."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core import gfx
from rocmend.core.errors import UsageError


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        ("RX 7900 XTX", "gfx1100"),
        ("rx7900xtx", "gfx1100"),
        ("AMD Radeon RX 7900 XTX (24 GB)", "gfx1100"),
        ("7900", "gfx1100"),
        ("strix-halo", "gfx1151"),
        ("Strix Halo", "gfx1151"),
        ("8060S", "gfx1151"),
        ("Ryzen AI Max+ 395", "gfx1151"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "gfx1151"),
        ("Radeon 8060S Graphics (RADV GFX1151)", "gfx1151"),
        ("MI300X", "gfx942"),
        ("mi300", "gfx942"),
        ("AMD Instinct MI250X / MI250", "gfx90a"),
        ("780M", "gfx1103"),
        ("steam deck", "gfx1033"),
        ("rx5600xt", "gfx1010"),
        ("navi_48", "gfx1201"),
        ("Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M] (rev c8)", "gfx1100"),
        # A letter makes another chip: these are Navi 22 and Navi 23, the RX 6800 is Navi 21.
        ("RX 6800", "gfx1030"),
        ("RX 6800 M", "gfx1031"),
        ("rx 6800s", "gfx1032"),
        ("Ryzen Z1", "gfx1103"),
        ("Ryzen 7 PRO 7840U", "gfx1103"),
        ("sienna_cichlid", "gfx1030"),
        ("navy_flounder", "gfx1031"),
        ("DIMGREY_CAVEFISH", "gfx1032"),
        ("Radeon VII", "gfx906"),
        ("CDNA3", "gfx942"),
        ("11.5.1", "gfx1151"),
        ("1151", "gfx1151"),
        ("GFX-1151", "gfx1151"),
        ("MI210:xnack-", "gfx90a:xnack-"),
        ("amdgcn-amd-amdhsa--gfx90a:sramecc+", "gfx90a:sramecc+"),
    ],
)
def test_resolves(asked: str, target: str) -> None:
    assert gfx.resolve(asked).gfx == target


def test_it_says_which_gpu_was_taken() -> None:
    assert gfx.resolve("rx7900xtx").said == "Radeon RX 7900 XTX is gfx1100"
    assert gfx.resolve("mi300").said == "mi300 (Instinct MI300X, Instinct MI300A, Instinct MI300X HF) is gfx942"
    assert gfx.resolve("GFX1100").said == ""


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("strix", ["gfx1150 (Strix Point: Radeon 890M", "gfx1151 (Strix Halo: Radeon 8060S"]),
        ("840M", ["gfx1152 (Krackan Point", "gfx1153 (Krackan Point 2"]),
        ("RX 6750 GRE 10GB", ["gfx1031 (Navi 22", "gfx1032 (Navi 23"]),
        ("rdna3", ["gfx1100", "gfx1103 (Phoenix, Hawk Point: Radeon 780M"]),
        ("strix-hallo", ["Did you mean Strix Halo (gfx1151)?"]),
        ("RX 7600 GRE", ["no AMD GPU", "RX 7600 (gfx1102)"]),
        ("RTX 4090", ["is not an AMD GPU"]),
        ("AMD Radeon Graphics", ["the name that most APUs go by"]),
        ("gfx1115", ["Did you mean gfx1", "gfx1151"]),
        ("gfx11-generic", ["is a generic target"]),
        ("", ["expected a name such as gfx1151"]),
        ("x" * 10_000, ["expected a name"]),
    ],
)
def test_what_is_not_one_gpu_is_an_error_with_candidates(asked: str, expected: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        gfx.resolve(asked)
    assert all(text in str(caught.value) for text in expected)
    assert "Did you mean" not in str(caught.value) or "RTX" not in asked


def test_every_name_that_is_offered_for_completion_resolves_to_its_target() -> None:
    rows = gfx.known_names()
    assert len({word for word, _, _ in rows}) == len(rows) > 200
    for word, target, _ in rows:
        assert " " not in word
        assert gfx.resolve(word).gfx == target


@given(st.text(max_size=60))
def test_any_text_is_a_gpu_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert gfx.find(gfx.resolve(text).gfx) is not None
