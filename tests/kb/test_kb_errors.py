"""Errors in texts that come in pieces: floods, very long lines, and what a reset's lines say together."""

from __future__ import annotations

import codecs

import pytest

from rocmend.kb.errors import BLOCK_BYTES, ErrorReader, Sighting, index_of
from rocmend.kb.load import load_entries

INDEX = index_of(load_entries())
FAULT = b"Memory access fault by GPU node-1 (Agent handle: 0x55f8b54eec30) on address 0x7f2a53193000. Reason: Unknown."
FAULT_ID = "driver-dmesg-page-fault"
BEGIN = b"amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!\n"
DONE = b"amdgpu 0000:c5:00.0: amdgpu: GPU reset succeeded, trying to resume\n"
UNFINISHED = "driver-dmesg-reset-unfinished"


def read(*pieces: bytes) -> dict[str, Sighting]:
    reader = ErrorReader(INDEX)
    for piece in pieces:
        reader.feed(piece)
    return {one.entry_id: one for one in reader.finish()}


def test_the_last_reset_of_a_flood_decides() -> None:
    flood = (BEGIN + DONE) * 300
    assert UNFINISHED not in read(flood)
    assert UNFINISHED in read(flood + BEGIN)
    assert UNFINISHED not in read(BEGIN * 300 + DONE)


OTHER_BEGIN, OTHER_DONE = BEGIN.replace(b":c5:", b":03:"), DONE.replace(b":c5:", b":03:")


@pytest.mark.parametrize("between", [b"", b"x" * BLOCK_BYTES + b"\n"])
def test_one_card_s_recovery_ends_no_other_card_s_reset(between: bytes) -> None:
    open_one = read(BEGIN, between, OTHER_BEGIN, between, OTHER_DONE)[UNFINISHED]
    assert ":c5:" in open_one.line
    assert open_one.count == 1
    assert ":03:" in read(BEGIN, OTHER_BEGIN, between, DONE)[UNFINISHED].line
    assert read(BEGIN, between, OTHER_BEGIN)[UNFINISHED].count == 2
    assert UNFINISHED in read(BEGIN, between, OTHER_DONE)
    assert UNFINISHED not in read(BEGIN, OTHER_BEGIN, between, OTHER_DONE, DONE)
    resumed = b"amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0\n"
    assert ":c5:" in read(BEGIN, OTHER_BEGIN, between, resumed)[UNFINISHED].line
    assert ":c5:" in read(BEGIN, OTHER_BEGIN, between, b"[drm] PCIE GART of 1024M enabled.\n")[UNFINISHED].line


@pytest.mark.parametrize(("lines", "count", "at_least"), [(99, 99, False), (100, 100, False), (101, 100, True)])
def test_a_flood_is_counted_as_far_as_it_is_looked_at(lines: int, count: int, *, at_least: bool) -> None:
    found = read((FAULT + b"\n") * lines)[FAULT_ID]
    assert (found.count, found.at_least) == (count, at_least)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_hides_nothing(encoding: str) -> None:
    anchored = b"Fatal Python error: Segmentation fault"
    text = anchored.decode().encode(encoding)
    assert text.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16))
    assert read(text).keys() == read(anchored).keys() != set()


@pytest.mark.parametrize("after", [b"", b" and more" * 1000])
@pytest.mark.parametrize("shift", [10, 60, 1000])
def test_an_error_across_a_cut_of_a_long_line_is_seen_once(shift: int, after: bytes) -> None:
    long = b"y " * (BLOCK_BYTES // 2 - shift // 2) + FAULT
    found = read(b"first\n", long[:BLOCK_BYTES], long[BLOCK_BYTES:] + after + b"\nlast\n")
    assert (found[FAULT_ID].count, found[FAULT_ID].number) == (1, 2)
    assert found[FAULT_ID].line.isprintable()


def test_the_middle_of_a_long_line_is_no_beginning() -> None:
    """In pieces of any size a line that only quotes an error is what it is as a short one."""
    error = b"Fatal Python error: Segmentation fault"
    assert read(error)
    assert not read(b"z" * 50 + error)
    for length in (*range(BLOCK_BYTES - 40, BLOCK_BYTES + 1, 8), 3000):
        assert not read(b"z" * length + error, b"y" * 100), length
