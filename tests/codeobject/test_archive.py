from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.codeobject.archive import Archive
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.reader import BytesReader, FileReader
from rocmend.core.errors import DataError


def zipped(
    members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, comment: bytes = b"", zip64: bool = False
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            with archive.open(name, "w", force_zip64=zip64) as file:
                file.write(data)
        archive.comment = comment
    return out.getvalue()


def contents(archive: Archive) -> dict[str, bytes]:
    return {member.name: archive.read(member, 1 << 20) for member in archive.members}


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20).filter(
            lambda name: "/" not in name
        ),
        st.binary(max_size=300),
        max_size=8,
    ),
    st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    st.booleans(),
    st.binary(max_size=30),
)
def test_reads_what_zipfile_writes(members: dict[str, bytes], method: int, zip64: bool, prefix: bytes) -> None:
    data = prefix + zipped(members, method, comment=b"a comment", zip64=zip64)
    archive = Archive(BytesReader(data))
    assert contents(archive) == members
    with zipfile.ZipFile(io.BytesIO(data)) as other:
        assert [(item.filename, item.file_size, item.compress_size) for item in other.infolist()] == [
            (item.name, item.size, item.stored_size) for item in archive.members
        ]


def test_zip64_directory(tmp_path: Path) -> None:
    """Sizes and offsets of which the 32-bit fields are all ones."""
    data = bytearray(zipped({"a.txt": b"hello"}, zipfile.ZIP_STORED))
    end = data.rindex(b"PK\x05\x06")
    entry = data.rindex(b"PK\x01\x02")
    offset = entry
    extra = struct.pack("<HHQQQ", 1, 24, 5, 5, 0)
    data[entry + 20 : entry + 28] = b"\xff" * 8
    data[entry + 42 : entry + 46] = b"\xff" * 4
    data[entry + 30 : entry + 32] = struct.pack("<H", len(extra))
    directory = bytes(data[entry:end]) + extra
    record = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(directory), offset)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, offset + len(directory), 1)
    last = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path = tmp_path / "big.zip"
    path.write_bytes(bytes(data[:entry]) + directory + record + locator + last)
    with zipfile.ZipFile(path) as other:
        assert other.read("a.txt") == b"hello"
    with FileReader(path) as reader:
        assert contents(Archive(reader)) == {"a.txt": b"hello"}


@pytest.mark.parametrize("cut", [1, 10, 22, 60, 100])
def test_truncated_archive(cut: int) -> None:
    data = zipped({"a": b"x" * 1000, "b": b"y"}, zipfile.ZIP_STORED)
    with pytest.raises(DataError):
        Archive(BytesReader(data[:-cut]))


def test_no_archive_at_all() -> None:
    with pytest.raises(DataError, match="no zip directory"):
        Archive(BytesReader(b"PK\x03\x04" + bytes(100)))


def patched(data: bytes, signature: bytes, at: int, value: bytes) -> bytes:
    where = data.index(signature) + at
    return data[:where] + value + data[where + len(value) :]


def test_member_that_is_larger_than_it_says() -> None:
    data = patched(zipped({"a": b"x" * 5000}), b"PK\x01\x02", 24, struct.pack("<I", 100))
    archive = Archive(BytesReader(data))
    with pytest.raises(DataError, match="more than the 100 bytes"):
        archive.open(archive.members[0]).drain()


def test_member_that_is_smaller_than_it_says() -> None:
    data = patched(zipped({"a": b"x" * 5000}), b"PK\x01\x02", 24, struct.pack("<I", 2**31))
    archive = Archive(BytesReader(data), Limits(ratio=1e9))
    with pytest.raises(DataError, match="cut off: 5000 of 2147483648"):
        archive.open(archive.members[0]).drain()


def test_damaged_deflate_stream() -> None:
    data = zipped({"a": bytes(range(256)) * 20})
    archive = Archive(BytesReader(data[:35] + b"\xff\xff\xff\xff" + data[39:]))
    with pytest.raises(DataError, match=r"inflate|cut off"):
        archive.open(archive.members[0]).drain()


def test_bomb_is_refused_and_can_be_let_in() -> None:
    data = zipped({"zeros": bytes(100 << 20)})
    archive = Archive(BytesReader(data))
    with pytest.raises(DataError, match="more than 250 times"):
        archive.open(archive.members[0]).drain()
    raised = Archive(BytesReader(data), Limits(ratio=2000))
    tracemalloc.start()
    assert raised.open(raised.members[0]).drain() == 100 << 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20


def test_limits_on_members_and_on_the_whole() -> None:
    data = zipped({str(number): bytes(1000) for number in range(20)})
    with pytest.raises(DataError, match="declares 20 members"):
        Archive(BytesReader(data), Limits(members=10))
    archive = Archive(BytesReader(data), Limits(member_bytes=500))
    with pytest.raises(DataError, match="at most 500"):
        archive.open(archive.members[0]).drain()
    archive = Archive(BytesReader(data), Limits(total_bytes=2500))
    archive.open(archive.members[0]).drain()
    archive.open(archive.members[1]).drain()
    with pytest.raises(DataError, match="beyond 2500 inflated bytes"):
        archive.open(archive.members[2]).drain()


def test_overlapping_members_are_left_out() -> None:
    data = zipped({"a": b"x" * 100, "b": b"y" * 100, "c": b"z" * 100}, zipfile.ZIP_STORED)
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 1)
    data = data[: second + 42] + struct.pack("<I", 0) + data[second + 46 :]  # b now claims to stand where a does
    archive = Archive(BytesReader(data))
    assert sorted(member.name for member in archive.members) == ["a", "c"]
    assert archive.problems[0][0] == "b"
    assert "overlaps" in archive.problems[0][1]


def test_member_beyond_the_directory() -> None:
    data = patched(zipped({"a": b"x" * 10}, zipfile.ZIP_STORED), b"PK\x01\x02", 20, struct.pack("<I", 2**32 - 2))
    archive = Archive(BytesReader(data))
    assert archive.members == ()
    assert "inside the directory" in archive.problems[0][1]


def test_names_that_are_not_utf8() -> None:
    data = zipped({"naïve": b"x"}, zipfile.ZIP_STORED)
    bad = data.replace("naïve".encode(), b"na\xff\xfeve")
    archive = Archive(BytesReader(bad))
    assert "not valid UTF-8" in archive.problems[0][1]
    assert archive.read(archive.members[0], 10) == b"x"


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [(8, b"\x01\x00", "encrypted"), (10, b"\x0c\x00", "method 12"), (42, struct.pack("<I", 1), "no local header")],
)
def test_members_that_cannot_be_read(at: int, value: bytes, message: str) -> None:
    """The third one's local header is looked for one byte beside it."""
    whole = zipped({"a": b"x" * 10, "b": b"y"}, zipfile.ZIP_STORED)
    archive = Archive(BytesReader(patched(whole, b"PK\x01\x02", at, value)), Limits())
    broken = next(member for member in archive.members if member.name == "a")
    with pytest.raises(DataError, match=message):
        archive.open(broken).drain()


def test_zip64_field_that_is_cut_off() -> None:
    data = zipped({"abcdefghijklm": b"x"}, zipfile.ZIP_STORED)
    entry, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    extra = struct.pack("<HH", 1, 24) + b"\x00" * 5  # claims 24 bytes and has 5
    changed = data[: entry + 30] + struct.pack("<H", len(extra)) + data[entry + 32 : end] + extra + data[end:]
    changed = patched(changed, b"PK\x05\x06", 12, struct.pack("<I", end - entry + len(extra)))
    assert contents(Archive(BytesReader(changed))) == {"abcdefghijklm": b"x"}


def test_four_gigabyte_directory() -> None:
    data = zipped({"a": b"x"})
    for at, value in ((12, 2**32 - 2), (16, 2**32 - 2)):
        with pytest.raises(DataError, match="no room"):
            Archive(BytesReader(patched(data, b"PK\x05\x06", at, struct.pack("<I", value))))


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bytes_never_crash(data: st.DataObject) -> None:
    whole = bytearray(zipped({"a.py": b"import x\n" * 30, "ü": b"y" * 50, "d/": b""}, zip64=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        archive = Archive(BytesReader(bytes(whole)))
    except DataError:
        return
    for member in archive.members:
        with suppress(DataError):
            archive.open(member).drain()
