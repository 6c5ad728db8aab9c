from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.kb.regex import MAX_STEPS, PatternError, TextTooLongError, compile_bounded


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^6\.1[4-9]", "6.14.0-34-generic", True),
        (r"^6\.1[4-9]", "6.8.0", False),
        (r"\d+\.\d+\.\d+", "7.2.1", True),
        (r"(oem|generic)$", "6.14.0-1018-oem", True),
        (r"^\d+(\.\d+)?$", "7.2", True),
        (r"[]:]x?", ":", True),
        (r"(?:ab){2}", "abab", True),
        (r"a+?b", "aab", True),
    ],
)
def test_patterns_are_searched(pattern: str, text: str, found: bool) -> None:
    assert compile_bounded(pattern).search(text) is found


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "((a*)b)*",
        "(a|aa)+b",
        "(a?){30}b",
        "(.*){2}",
        r"(a)\1",
        "(?=a)",
        "(?P<name>a)",
        "(?i)a",
        "(",
        "[",
        "a**",
        "*",
        "[[:]a",
        "a?" * 11,
        "a" * 201,
        "a{99999999999}",
    ],
)
def test_patterns_without_a_bound_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_bounded(pattern)


def test_brackets_and_escapes_hide_repetitions() -> None:
    assert compile_bounded(r"[*+?]\*\+{x}").repeats == 0
    assert compile_bounded("[]*]+").repeats == 1


def test_a_long_text_is_refused_before_it_takes_long() -> None:
    pattern = compile_bounded("a*a*a*b")
    with pytest.raises(TextTooLongError, match="too long"):
        pattern.search("a" * 1000)
    longest = int(MAX_STEPS ** (1 / 4)) - 1
    before = time.process_time()
    assert pattern.search("a" * longest) is False
    assert time.process_time() - before < 10


@given(st.text(alphabet="ab.*+?()[]{}|^$\\0123,:=<>!", max_size=30), st.text(alphabet="ab0\\", max_size=20))
def test_a_pattern_does_what_re_does_or_is_refused(pattern: str, text: str) -> None:
    try:
        found = compile_bounded(pattern).search(text)
    except (PatternError, TextTooLongError):
        return
    assert found is (re.search(pattern, text) is not None)
