from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.reader import (
    MAX_READ_BYTES,
    BytesReader,
    FileReader,
    PassedError,
    StreamReader,
)
from rocmend.codeobject.scanner import Scanner
from rocmend.core.errors import DataError


def in_blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def test_file_reader(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 4096)
    with FileReader(path) as reader:
        assert reader.size == 1 << 20
        assert reader.read(255, 2) == b"\xff\x00"
        assert reader.read((1 << 20) - 3, 10) == b"\xfd\xfe\xff"
        assert reader.read(2**63, 10) == b""
        assert len(reader.read(0, 1 << 20)) == 1 << 20


def test_structures_in_one_piece_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    with FileReader(path) as reader:
        for made in (reader, BytesReader(b"x"), StreamReader(iter([b"x"]), 1)):
            with pytest.raises(DataError, match="in one piece"):
                made.read(0, MAX_READ_BYTES + 1)


def test_file_that_shrinks_is_short_not_fatal(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 1000)
    with FileReader(path) as reader:
        path.write_bytes(b"y" * 10)
        assert reader.read(0, 1000) == b"y" * 10
        with pytest.raises(DataError, match="ends inside a table"):
            reader.read_exactly(0, 1000, "a table")


def test_stream_keeps_head_window_and_what_it_is_told_to() -> None:
    data = bytes(range(250)) * 400  # 100,000 bytes
    reader = StreamReader(in_blocks(data, 1000), len(data), head_bytes=3000, window_bytes=5000)
    reader.keep(50_500, 100)
    assert reader.read(90_000, 10) == data[90_000:90_010]
    assert reader.read(100, 10) == data[100:110]
    assert reader.read(50_500, 100) == data[50_500:50_600]
    assert reader.read(86_500, 10) == data[86_500:86_510]
    with pytest.raises(PassedError, match="already gone by"):
        reader.read(40_000, 10)
    assert reader.drain() == len(data)


def test_keeping_what_has_just_passed() -> None:
    data = bytes(range(250)) * 400
    reader = StreamReader(in_blocks(data, 1000), len(data), head_bytes=1000, window_bytes=5000)
    reader.read(40_000, 1)
    reader.keep(38_000, 4000)  # half behind, half ahead
    reader.drain()
    assert reader.read(38_000, 4000) == data[38_000:42_000]


@given(st.binary(min_size=1, max_size=3000), st.integers(1, 100), st.data())
def test_a_stream_reads_as_the_bytes_do(data: bytes, block: int, draw: st.DataObject) -> None:
    reader = StreamReader(in_blocks(data, block), len(data))
    for _ in range(5):
        at, size = draw.draw(st.integers(0, 3100)), draw.draw(st.integers(0, 300))
        assert reader.read(at, size) == data[at : at + size]


@given(st.lists(st.sampled_from([b"AB", b"ABC", b"x", b"A", b"CAB"]), max_size=300), st.integers(1, 7))
def test_scanner_finds_marks_across_blocks(parts: list[bytes], block: int) -> None:
    data = b"".join(parts)
    marks = [b"ABC", b"CA"]
    expected = sorted((at, mark) for mark in marks for at in range(len(data)) if data.startswith(mark, at))
    scanner = Scanner(StreamReader(in_blocks(data, block), len(data)), marks)
    found, at = [], 0
    while (hit := scanner.find(at, len(data))) is not None:
        found.append(hit)
        at = hit[0] + 1
    assert found == [pair for index, pair in enumerate(expected) if index == 0 or pair[0] != expected[index - 1][0]]


def test_scanner_stops_at_the_end_it_is_given() -> None:
    scanner = Scanner(BytesReader(b"....MARK...."), [b"MARK"])
    assert scanner.find(0, 4) is None
    assert scanner.find(0, 5) == (4, b"MARK")
    assert scanner.find(5, 12) is None
