from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.kb.versions import parse_range, parse_version

IN_ORDER = [
    "2.10.0.dev20251101+rocm7.0",
    "2.10.0a0",
    "2.10.0b2",
    "2.10.0rc1",
    "2.10.0",
    "2.10.0.post1",
    "2.11.0a0+git1234567",
    "6.2.41134-65d174c3e",
    "6.14.0-rc3",
    "6.14.0",
    "6.14.0-34-generic",
    "6.14.0-35-generic",
    "6.14.0-1018-oem",
    "6.18.4-cachyos",
    "7.0.2.70002-56~24.04",
    "7.2",
    "7.10.0rc20251104",
    "20240318.git3b128b60-0ubuntu2.10",
    "1:6.14",
]


def test_versions_are_ordered_as_documented() -> None:
    parsed = [parse_version(text) for text in IN_ORDER]
    assert sorted(parsed[::2] + parsed[1::2]) == parsed
    assert len(set(parsed)) == len(parsed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("7.2", "7.2.0"),
        ("2.5.1+rocm6.2", "2.5.1"),
        ("v6.18.4", "6.18.4-cachyos"),
        ("6.2.41134-65d174c3e", "6.2.41134"),
        ("2.11.0alpha0", "2.11.0a0"),
        ("6.17.7-300.fc43.x86_64", "6.17.7-300"),
    ],
)
def test_where_a_build_comes_from_is_ignored(one: str, other: str) -> None:
    assert parse_version(one) == parse_version(other)
    assert hash(parse_version(one)) == hash(parse_version(other))


def test_a_development_build_of_a_prerelease_comes_before_it() -> None:
    assert parse_version("2.0a1.dev3") < parse_version("2.0a1")


@pytest.mark.parametrize("text", ["", "latest", "rocm-7.2", "7zip", "7_2", "-1", "." * 300, "7." + "1" * 30])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="version"):
        parse_version(text)


@pytest.mark.parametrize(
    ("text", "version", "inside"),
    [
        (">=7.0,<7.2", "7.0", True),
        (">=7.0,<7.2", "7.1.1", True),
        (">=7.0,<7.2", "7.2", False),
        (">=7.0,<7.2", "7.2rc1", True),
        ("7.1", "7.1.0", True),
        ("7.1", "7.1.1", False),
        ("!=7.1", "7.1", False),
        ("==7.2.*", "7.2.9", True),
        ("==7.2.*", "7.20", False),
        ("!=7.2.*", "7.2.1", False),
        ("==7.*", "7", True),
        ("> 6.14.0-33", "6.14.0-34-generic", True),
        ("<=6.14.0", "6.14.0-34-generic", False),
        ("", "0", True),
    ],
)
def test_a_range_admits_its_versions(text: str, version: str, inside: bool) -> None:
    assert (parse_version(version) in parse_range(text)) is inside


@pytest.mark.parametrize("text", ["7.0 to 7.2", ">=", "~=7.0", ">=7.0,,<8", ">7.*", "all", ",", ">=1," * 20])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="version"):
        parse_range(text)


@given(st.text(max_size=300))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    try:
        version = parse_version(text)
    except DataError:
        return
    assert version == version  # noqa: PLR0124  equality must hold for whatever was parsed
    assert not version < version  # noqa: PLR0124


@given(st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc|\.dev)[0-9]{1,2})?(-[0-9]{1,3})?", fullmatch=True))
def test_a_version_lies_in_the_range_that_names_it(text: str) -> None:
    version = parse_version(text)
    assert version in parse_range(text)
    assert version in parse_range(f">={text},<={text}")
    assert version not in parse_range(f">{text}")


@given(st.text(max_size=200))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    try:
        parsed = parse_range(text)
    except DataError:
        return
    assert isinstance(parse_version("1.0") in parsed, bool)
