from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.signatures import judging
from rocmend.core.verdict import Verdict
from rocmend.runner.failures import FailureScanner, failure_of


def test_kinds_are_sound() -> None:
    for known in judging().known:
        signature = known.signature
        assert signature.kind
        assert signature.meaning.endswith(".")
        assert signature.verdict not in {Verdict.PASS, Verdict.HANG}
        assert all(line.source.startswith("https://") for line in signature.lines)


def test_each_kind_is_that_of_its_own_lines() -> None:
    for known in judging().known:
        for line in known.signature.lines:
            assert known in judging().of(line.text), line.text


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
