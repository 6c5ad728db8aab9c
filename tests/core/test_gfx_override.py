import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core import gfx
from rocmend.core.errors import UsageError

any_target = st.sampled_from(gfx.targets())


@pytest.mark.parametrize(
    ("have", "wanted", "value", "sane"),
    [
        ("gfx1151", "gfx1100", "11.0.0", True),
        ("gfx1103", "gfx1100", "11.0.0", True),
        ("gfx1031", "gfx1030", "10.3.0", True),
        ("gfx1012", "gfx1010", "10.1.0", True),
        ("gfx90c", "gfx900", "9.0.0", True),
        ("gfx1010", "gfx1030", "10.3.0", False),
        ("gfx1010", "gfx1012", "10.1.2", False),
        ("gfx1100", "gfx1151", "11.5.1", False),
        ("gfx900", "gfx906", "9.0.6", False),
        ("gfx908", "gfx90a", "9.0.10", False),
        ("gfx942", "gfx950", "9.5.0", False),
        ("gfx1201", "gfx1100", "11.0.0", False),
    ],
)
def test_judgements(have: str, wanted: str, value: str, sane: bool) -> None:
    override = gfx.override_between(have, wanted)
    assert (override.value, override.sane) == (value, sane)
    assert have in override.reason
    assert wanted in override.reason


def test_crossing_is_refused_with_both_classes_named() -> None:
    reason = gfx.override_between("gfx1010", "gfx1030").reason
    assert "gfx10-1-generic" in reason
    assert "gfx10-3-generic" in reason


def test_smaller_register_files_are_told() -> None:
    assert "1024 vector registers a SIMD against 1536" in gfx.override_between("gfx1103", "gfx1100").reason
    assert "against" not in gfx.override_between("gfx1151", "gfx1100").reason


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(UsageError):
        gfx.override_between("gfx1151", "gfx9999")


@given(any_target, any_target)
def test_sane_only_inside_one_class(have: gfx.GfxTarget, wanted: gfx.GfxTarget) -> None:
    override = gfx.override_between(have, wanted)
    assert override.value == wanted.override_value
    if override.sane and have.name != wanted.name:
        assert have.generic_class is not None
        assert have.generic_class == wanted.generic_class
    if have.name == wanted.name:
        assert override.sane
