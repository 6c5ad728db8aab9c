from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.runner.output import LineScanner, OutputKeeper, Sieve, find_lines


@given(st.lists(st.binary(max_size=200), max_size=30), st.integers(1, 400))
def test_kept_and_dropped_make_up_what_came(chunks: list[bytes], limit: int) -> None:
    keeper = OutputKeeper(limit)
    for index, chunk in enumerate(chunks):
        keeper.add(float(index), "stdout", chunk)
    summary = keeper.finish()
    total = b"".join(chunks)
    half = max(1, limit // 2)
    assert summary.bytes == len(total)
    assert summary.lines == total.count(b"\n")
    assert summary.dropped_bytes == max(0, len(total) - 2 * half)
    assert summary.head == total[: 1 << 15].decode(errors="replace")


def test_the_log_has_time_and_stream_before_each_line(tmp_path: Path) -> None:
    keeper = OutputKeeper(1000, tmp_path / "o.log")
    keeper.add(0.0, "stdout", b"one\ntwo")
    keeper.add(1500.0, "stderr", b"err\n")
    keeper.add(2000.0, "stdout", b" rest\n\nlast\n")
    keeper.finish()
    assert (tmp_path / "o.log").read_text().splitlines() == [
        "[      0.000 o] one",
        "[      0.000 o] two",
        "[      1.500 e] err",
        "[      2.000 o]  rest",
        "[      2.000 o] ",
        "[      2.000 o] last",
    ]


def test_the_log_says_what_is_missing(tmp_path: Path) -> None:
    keeper = OutputKeeper(40, tmp_path / "o.log")
    for index in range(10):
        keeper.add(0.0, "stdout", f"line number {index}\n".encode())
    summary = keeper.finish()
    text = (tmp_path / "o.log").read_text()
    assert summary.dropped_bytes == 140 - 40
    assert "[… 100 bytes were not kept …]" in text
    assert text.startswith("[      0.000 o] line number 0")
    assert text.endswith("line number 9\n")


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_a_scanner_gives_back_every_byte_in_whole_lines(chunks: list[bytes]) -> None:
    scanner = LineScanner()
    blocks = [scanner.feed(chunk) for chunk in chunks]
    assert all(not block or block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) + scanner.rest() == b"".join(chunks)


def test_a_line_without_end_is_given_in_pieces() -> None:
    scanner = LineScanner()
    total = sum(len(scanner.feed(b"x" * 50_000)) for _ in range(40))
    assert total > 1_800_000
    assert len(scanner.unfinished) <= 1 << 16


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"a\nfoo 1\nb\nbar foo\n", ["foo 1", "bar foo"]),
        (b"10%\r20% foo\r30%\n", ["20% foo\r30%"]),
        (b"no end foo", ["no end foo"]),
        (b"", []),
    ],
)
def test_lines_with_a_word(block: bytes, expected: list[str]) -> None:
    assert [hit.line for hit in find_lines(block, (b"foo",))] == expected


def test_of_many_lines_the_first_and_the_last_are_found() -> None:
    block = b"".join(b"foo %d\n" % index for index in range(1000))
    lines = [hit.line for hit in find_lines(block, (b"foo",), max_hits=10)]
    assert lines == [*(f"foo {index}" for index in range(10)), "foo 999"]


_LINES = st.lists(
    st.one_of(
        st.sampled_from([b"load 12 of 40", b"error 7", b"model x failed (exit 137)", b"ok", b"", b"err", b"or 5"]),
        st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")),
    ),
    max_size=30,
)


@given(st.lists(_LINES, max_size=6))
def test_a_sieve_never_takes_out_a_line_that_holds_a_word(blocks: list[list[bytes]]) -> None:
    words = (b"error", b"(exit 137)", b"load 1")
    sieve = Sieve(words)
    for lines in blocks:
        block = b"".join(line + b"\n" for line in lines)
        kept = sieve.keep(block).split(b"\n")
        wanted = [line for line in lines if any(word in line for word in words)]
        assert [line for line in kept if any(word in line for word in words)] == wanted


def test_a_sieve_forgets_rather_than_grows() -> None:
    sieve = Sieve((b"error",))
    for index in range(20_000):
        shape = bytes(97 + (index >> shift) % 26 for shift in (0, 4, 8, 12))
        sieve.keep(shape * 3 + b"\n" + bytes([index % 256]) * 600 + b"\n")
    assert len(sieve._clear) <= 4096
