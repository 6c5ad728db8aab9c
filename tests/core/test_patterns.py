"""Patterns of others are searched in linear time, wherever they come in."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.core.patterns import PatternError, compile_pattern
from rocmend.core.signatures import builtin, expanded
from rocmend.kb.functions import matches
from rocmend.kb.reading import Reading
from rocmend.lab.oracle import _number, _pattern
from rocmend.machine.facts import Machine
from rocmend.port.classify import named
from rocmend.runner.phases import FOLDER, PhaseTracker, known_sets, load_phases

SLOW_IN_RE = ("(?:.|.|.)" * 21 + "x", "(a+)+b", "((a*)b)*c", "(a|aa)+b", "a*a*a*a*a*b", r"(\w+\s?)+!")
LIMIT_S = 2.0


@pytest.mark.parametrize("pattern", SLOW_IN_RE)
def test_what_takes_re_for_ever_takes_no_time_anywhere(pattern: str, tmp_path: Path) -> None:
    text = "a" * 30_000
    before = time.process_time()
    assert compile_pattern(pattern).search(text) is None
    assert matches(Reading(Machine("m", "", {}, {})), text, pattern) is False
    assert _pattern(text, pattern, pattern) == f"the output does not match {pattern!r}"
    assert _number(text, f"({pattern})") is None
    (tmp_path / "own.toml").write_text(
        f"[set]\ntitle = 'x'\n[[phases]]\nname = 'load'\nwords = ['a']\npattern = '{pattern}'\n"
    )
    assert PhaseTracker(load_phases(str(tmp_path / "own.toml"))).feed(text.encode() + b"\n") == []
    assert time.process_time() - before < LIMIT_S


def test_a_glob_of_many_stars_takes_no_time() -> None:
    before = time.process_time()
    assert not named("a/" + "a" * 3000, ["*a" * 30 + "b", "x/" + "*a" * 30 + "b"])
    assert time.process_time() - before < LIMIT_S
    assert named("src/one/two.cu", ["*o*.cu"])
    assert named("src/one/two.cu", ["src/*/t*o.c?"])
    assert not named("src/one/two.cu", ["o*.cu"])


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "(?P<x>a)(?P=x)", "(", "[", "*", "a{1001}", "a" * 1001, "((a{9}){9}){99}"]
)
def test_what_re2_does_not_have_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern)
    assert "b'" not in raised.value.reason


@pytest.mark.parametrize(
    ("pattern", "named"), [(r"(a)\1", "back references"), ("(?=a)", "look-around"), (r"(\\1", ""), ("(?m)(.", "")]
)
def test_a_refusal_is_of_the_pattern_as_it_was_written(pattern: str, named: str) -> None:
    with pytest.raises(PatternError) as raised:
        compile_pattern(pattern, lines=True)
    assert raised.value.reason.count("(?m)") == pattern.count("(?m)")
    assert named in raised.value.next_step
    assert bool(named) == bool(raised.value.next_step)


def test_a_refused_pattern_names_what_to_write_instead(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[set]\ntitle = 'x'\n[[phases]]\nname = 'a'\nwords = ['a']\npattern = '(?=a)'\n")
    with pytest.raises(DataError, match="no look-around"):
        load_phases(str(tmp_path / "own.toml"))


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # re's, of brackets that later versions may nest
@given(st.text(alphabet="ab.*+?()[]|^\\0123,", max_size=20), st.text(alphabet="ab0\n", max_size=20))
def test_a_pattern_finds_what_re_finds_or_is_refused(pattern: str, text: str) -> None:
    try:
        found = compile_pattern(pattern).search(text)
        wanted = re.search(pattern, text, re.ASCII)
    except (PatternError, re.error):
        return
    assert (found is None) is (wanted is None)


def test_text_of_any_bytes_is_searched() -> None:
    assert compile_pattern("b$").search("\udc80é\x00b") is not None
    assert [found.group(1) for found in compile_pattern("^(.)b", lines=True).finditer("éb\nab")] == ["é", "a"]


def test_one_pattern_serves_many_threads() -> None:
    pattern = compile_pattern(r"(\d+) t/s")
    wrong: list[int] = []

    def look(number: int) -> None:
        for _ in range(300):
            found = pattern.search(f"{'x' * 2000} {number} t/s")
            if found is None or found.group(1) != str(number):
                wrong.append(number)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_ours_are_all_linear() -> None:
    assert builtin()
    for known in builtin():
        compile_pattern(expanded(known.signature.pattern))
    assert all(load_phases(name).phases for name in known_sets())
    assert FOLDER.is_dir()


def test_nothing_loads_the_engine_before_it_searches() -> None:
    code = "import sys, rocmend.cli.main, rocmend.kb.load, rocmend.lab.load; print('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
