import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core import gfx
from rocmend.core.errors import UsageError

NAMES = [target.name for target in gfx.targets()]


@pytest.mark.parametrize(
    ("text", "processor", "features"),
    [
        ("gfx1151", "gfx1151", {}),
        (" GFX1151\n", "gfx1151", {}),
        ("gfx90a:sramecc+:xnack-", "gfx90a", {"sramecc": True, "xnack": False}),
        ("gfx90a:xnack-:sramecc+", "gfx90a", {"sramecc": True, "xnack": False}),
        ("amdgcn-amd-amdhsa--gfx1151", "gfx1151", {}),
        ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", "gfx942", {"xnack": True}),
        ("hip-amdgcn-amd-amdhsa--gfx906", "gfx906", {}),
        ("hip-amdgcn-amd-amdhsa-gfx1030", "gfx1030", {}),
        ("gfx11-generic", "gfx11-generic", {}),
        ("amdgcn-amd-amdhsa-unknown-gfx9-4-generic:xnack-", "gfx9-4-generic", {"xnack": False}),
        ("gfx1250-strict", "gfx1250-strict", {}),
    ],
)
def test_parses(text: str, processor: str, features: dict[str, bool]) -> None:
    assert gfx.parse_target_id(text) == gfx.TargetId(processor, features)


@pytest.mark.parametrize(
    "text",
    ["", "gfx", "1151", "sm_90", "gfx90a:", "gfx90a:xnack", "gfx90a:xnack+extra", "nvptx64-nvidia-cuda--sm_90",
     "gfx90a:xnack+:xnack-", "gfx1151 gfx1100", "gfx" + "1" * 10_000, "gfx\0", "gfx11-",
     "\u0661\u0661", "gfx\uff11\uff11"],
)  # fmt: skip
def test_refuses(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        gfx.parse_target_id(text)
    assert len(str(caught.value)) < 400


def test_unknown_names_get_near_matches() -> None:
    with pytest.raises(UsageError, match="gfx1151"):
        gfx.lookup("gfx1115")
    with pytest.raises(UsageError, match="`rocmend targets` lists all"):
        gfx.lookup("gfxzzzzzzz")
    assert gfx.find("gfx803") is None
    assert gfx.find("no name at all") is None


features = st.dictionaries(st.sampled_from(["xnack", "sramecc"]), st.booleans())
prefixes = st.sampled_from(["", "amdgcn-amd-amdhsa--", "hip-amdgcn-amd-amdhsa--", "hipv4-amdgcn-amd-amdhsa--"])


@given(st.sampled_from(NAMES), features, prefixes, st.booleans())
def test_every_spelling_of_a_target_leads_to_it(name: str, switches: dict[str, bool], prefix: str, upper: bool) -> None:
    text = prefix + str(gfx.TargetId(name, switches))
    text = text.upper() if upper else text
    parsed = gfx.parse_target_id(text)
    assert parsed == gfx.TargetId(name, switches)
    assert gfx.lookup(text).name == name
    assert gfx.parse_target_id(str(parsed)) == parsed


@given(st.text(max_size=300))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        parsed = gfx.parse_target_id(text)
    except UsageError:
        assert gfx.find(text) is None
    else:
        assert parsed.processor.startswith("gfx")


@given(st.text(alphabet="gfx0129ac:+-_.amdhsn", max_size=60))
def test_near_names_parse_or_are_refused(text: str) -> None:
    try:
        assert str(gfx.parse_target_id(text)).startswith("gfx")
    except UsageError as error:
        assert error.next_step  # noqa: PT017  both endings are right; an error must say what to do
