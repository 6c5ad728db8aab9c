from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.verdict import Verdict
from rocmend.runner.failures import STEMS, FailureScanner, failure_of, known_failures


def test_every_word_can_be_found_by_a_stem() -> None:
    for item in known_failures():
        for word in item.words:
            assert any(stem.decode() in word for stem in STEMS), (item.id, word)


def test_kinds_are_sound() -> None:
    ids = [item.id for item in known_failures()]
    assert len(set(ids)) == len(ids)
    for item in known_failures():
        assert item.meaning.endswith(".")
        assert item.source.startswith("https://")
        assert item.verdict not in {Verdict.PASS, Verdict.HANG}


def test_the_weightiest_comes_first_and_lines_are_counted() -> None:
    scanner = FailureScanner()
    scanner.feed(b"ROCm error: x\nROCm error: y\nHIP out of memory\nfine\n")
    assert [(item.id, item.count) for item in scanner.seen()] == [("hip-out-of-memory", 1), ("hip-error", 2)]
    assert scanner.seen()[1].line == "ROCm error: x"


def test_a_line_in_a_flood_is_found() -> None:
    scanner = FailureScanner()
    flood = b"0 errors so far\n" * 5000
    scanner.feed(flood + b"GGML_ASSERT(x == y) failed\n" + flood)
    assert [item.id for item in scanner.seen()] == ["abort-text"]


@given(st.binary(max_size=2000))
def test_any_output_can_be_looked_at(data: bytes) -> None:
    scanner = FailureScanner()
    scanner.feed(data)
    scanner.seen()


@given(st.text(max_size=500))
def test_any_line_can_be_judged(line: str) -> None:
    failure_of(line)
