from __future__ import annotations

import struct
import tracemalloc
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.bundle import CodeObject, read_bundle, read_compressed
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.reader import BytesReader
from rocmend.core.errors import DataError

if TYPE_CHECKING:
    from tests.codeobject.conftest import Build


def targets_of(objects: tuple[CodeObject, ...]) -> list[str]:
    return [item.target for item in objects]


def test_plain_bundle(build: type[Build]) -> None:
    data = build.bundle_for("gfx90a:xnack+", "gfx1030", "gfx1151")
    found = read_bundle(BytesReader(data), 0)
    assert targets_of(found.code_objects) == ["gfx90a:xnack+", "gfx1030", "gfx1151"]
    assert found.other_entries == ("host-x86_64-unknown-linux-gnu-",)
    assert [item.code_object_version for item in found.code_objects] == [5, 5, 5]
    assert found.end == 3 * 4096 + len(build.code_object("gfx1151"))
    assert not found.problems


def test_bundle_in_the_middle(build: type[Build]) -> None:
    data = b"q" * 777 + build.bundle_for("gfx1100") + b"tail"
    found = read_bundle(BytesReader(data), 777)
    assert (found.offset, targets_of(found.code_objects)) == (777, ["gfx1100"])


def test_generic_target_keeps_its_version(build: type[Build]) -> None:
    found = read_bundle(BytesReader(build.bundle_for("gfx11-generic", "gfx1030", generic=2)), 0)
    assert found.code_objects[0].generic_version == 2
    assert found.code_objects[1].generic_version == 0


def test_label_without_settings_takes_those_of_version_3_code(build: type[Build]) -> None:
    code = build.code_object("gfx906:sramecc+", version=3)
    found = read_bundle(BytesReader(build.bundle([("hip-amdgcn-amd-amdhsa-gfx906", code)])), 0)
    assert targets_of(found.code_objects) == ["gfx906:sramecc+:xnack-"]


def test_label_and_code_must_agree(build: type[Build]) -> None:
    data = build.bundle([("hipv4-amdgcn-amd-amdhsa--gfx1151", build.code_object("gfx1100"))])
    found = read_bundle(BytesReader(data), 0)
    assert [(item.target, bool(item.damage)) for item in found.code_objects] == [("gfx1151", True)]
    assert "holds code for gfx1100" in found.problems[0]


def test_entry_that_is_no_code_object(build: type[Build]) -> None:
    found = read_bundle(BytesReader(build.bundle([("hipv4-amdgcn-amd-amdhsa--gfx1151", b"z" * 200)])), 0)
    assert [(item.target, bool(item.damage)) for item in found.code_objects] == [("gfx1151", True)]
    assert "not a 64-bit little-endian ELF" in found.problems[0]


def test_empty_entry_carries_no_code(build: type[Build]) -> None:
    found = read_bundle(BytesReader(build.bundle([("hipv4-amdgcn-amd-amdhsa--gfx1151", b"")])), 0)
    assert found.code_objects == ()
    assert not found.problems


def test_spirv_and_unknown_targets(build: type[Build]) -> None:
    data = build.bundle(
        [("hip-spirv64-amd-amdhsa--amdgcnspirv", b"spirv"), ("hipv4-amdgcn-amd-amdhsa--gfx9999", b"x" * 64)]
    )
    found = read_bundle(BytesReader(data), 0)
    assert targets_of(found.code_objects) == ["amdgcnspirv"]
    assert "names no gfx target that we know" in found.problems[0]


def test_truncated_bundle_keeps_what_is_whole(build: type[Build]) -> None:
    data = build.bundle_for("gfx1030", "gfx1100")
    found = read_bundle(BytesReader(data[: 2 * 4096 + 10]), 0)
    assert [(item.target, bool(item.damage)) for item in found.code_objects] == [("gfx1030", False), ("gfx1100", True)]
    assert "cut off: the file has 10 of the 576 bytes" in found.problems[0]


@pytest.mark.parametrize("count", [0, 1025, 2**32, 2**64 - 1])
def test_absurd_entry_counts(count: int) -> None:
    with pytest.raises(DataError, match="entries"):
        read_bundle(BytesReader(b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", count) + bytes(5000)), 0)


def test_four_gigabyte_id() -> None:
    data = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 4096, 10, 2**32) + bytes(5000)
    with pytest.raises(DataError, match="4294967296 bytes long"):
        read_bundle(BytesReader(data), 0)


def test_offsets_that_overflow(build: type[Build]) -> None:
    data = bytearray(build.bundle_for("gfx1100"))
    at = data.index(b"hipv4") - 24
    data[at : at + 16] = struct.pack("<QQ", 2**64 - 8, 2**64 - 8)
    found = read_bundle(BytesReader(bytes(data)), 0)
    assert [(item.target, bool(item.damage)) for item in found.code_objects] == [("gfx1100", True)]
    assert "cut off" in found.problems[0]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_compressed_bundle(build: type[Build], version: int, method: str) -> None:
    plain = build.bundle_for("gfx942:xnack-", "gfx1201")
    data = build.compressed(plain, version=version, method=method)
    found = read_compressed(BytesReader(data), 0)
    assert targets_of(found.code_objects) == ["gfx942:xnack-", "gfx1201"]
    assert (found.compression, found.format_version) == (method, version)
    assert found.end == (len(data) if version > 1 else 20)


def test_only_the_beginning_of_a_compressed_bundle_is_inflated(build: type[Build]) -> None:
    code = build.code_object("gfx1100", text=bytes(3 << 20))
    second = build.code_object("gfx1101")
    names = [f"hipv4-amdgcn-amd-amdhsa--{name}" for name in ("gfx1100", "gfx1101")]
    plain = build.bundle([(names[0], code), (names[1], second)])
    found = read_compressed(BytesReader(build.compressed(plain)), 0)
    assert [(item.target, item.code_object_version) for item in found.code_objects] == [("gfx1100", 5), ("gfx1101", 0)]
    assert found.code_objects[1].size_bytes == len(second)


def test_generic_version_is_read_however_far_it_stands(build: type[Build]) -> None:
    code = build.code_object("gfx1030", text=bytes(3 << 20))
    generic = build.code_object("gfx12-generic", version=6, generic=1)
    plain = build.bundle(
        [("hipv4-amdgcn-amd-amdhsa--gfx1030", code), ("hipv4-amdgcn-amd-amdhsa--gfx12-generic", generic)]
    )
    found = read_compressed(BytesReader(build.compressed(plain)), 0)
    assert found.code_objects[1].generic_version == 1


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"CCOB" + struct.pack("<HHQQQ", 4, 1, 100, 100, 0), "version 4"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 7, 100, 100, 0), "method 7"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 1, 2**40, 100, 0), "has 32 of the 1,099,511,627,776 bytes"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 1, 5, 100, 0), "claims 5 bytes"),
        (b"CCOB" + struct.pack("<HHIIQ", 2, 1, 2**32 - 1, 2**32 - 1, 0), "has 24 of the 4,294,967,295 bytes"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 1, 64, 100, 0) + b"n" * 64, "does not inflate"),
        (b"CCOB" + struct.pack("<HHQQQ", 3, 0, 64, 100, 0) + b"n" * 64, "does not inflate"),
        (b"CCOB\x03\x00\x01\x00\x10", "no compressed offload bundle"),
        (b"CCOB" + struct.pack("<HHQQ", 3, 1, 24, 100), "ends inside the header"),
    ],
)
def test_damaged_compressed_headers(head: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_compressed(BytesReader(head), 0)


def test_compressed_something_else(build: type[Build]) -> None:
    with pytest.raises(DataError, match="no offload bundle"):
        read_compressed(BytesReader(build.compressed(b"not a bundle" * 100)), 0)


def test_truncated_payload(build: type[Build]) -> None:
    data = build.compressed(build.bundle_for("gfx1100"))
    cut = data[:4] + data[4:8] + struct.pack("<QQQ", 60, 9000, 0) + data[32:60]
    with pytest.raises(DataError):
        read_compressed(BytesReader(cut), 0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["zlib", "zstd"])
def test_bomb_in_a_bundle_takes_no_memory(method: str) -> None:
    """Half a gigabyte of zeros behind an entry table that points to its end."""
    zeros = bytes(1 << 20)
    table = (
        b"__CLANG_OFFLOAD_BUNDLE__"
        + struct.pack("<QQQQ", 1, 500 << 20, 4096, 38)
        + b"hipv4-amdgcn-amd-amdhsa--gfx11-generic"
    )
    if method == "zlib":
        press = zlib.compressobj()
        payload = press.compress(table) + b"".join(press.compress(zeros) for _ in range(501)) + press.flush()
    else:
        other = zstandard.ZstdCompressor().compressobj()
        payload = other.compress(table) + b"".join(other.compress(zeros) for _ in range(501)) + other.flush()
    number = {"zlib": 0, "zstd": 1}[method]
    size = len(payload) + 32
    data = b"CCOB" + struct.pack("<HHQQQ", 3, number, size, (501 << 20) + len(table), 0) + payload
    tracemalloc.start()
    found = read_compressed(BytesReader(data), 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [item.generic_version for item in found.code_objects] == [0]  # too far in to be read
    assert peak < 32 << 20


def test_window_beyond_the_limit_is_refused(build: type[Build]) -> None:
    plain = build.bundle([("hipv4-amdgcn-amd-amdhsa--gfx1100", build.code_object(text=bytes(8 << 20)))])
    with pytest.raises(DataError, match="does not inflate"):
        read_compressed(BytesReader(build.compressed(plain)), 0, Limits(zstd_window_bytes=1 << 20))


@given(st.binary(max_size=400))
def test_any_bytes_after_the_magic(tail: bytes) -> None:
    with suppress(DataError):
        read_bundle(BytesReader(b"__CLANG_OFFLOAD_BUNDLE__" + tail), 0)


@given(st.integers(0, 5), st.integers(0, 3), st.binary(max_size=400))
def test_any_bytes_after_the_compressed_magic(version: int, method: int, tail: bytes) -> None:
    with suppress(DataError):
        read_compressed(BytesReader(b"CCOB" + struct.pack("<HH", version, method) + tail), 0)


@given(data=st.data())
def test_a_flipped_byte_never_crashes(data: st.DataObject, build: type[Build]) -> None:
    whole = bytearray(
        build.bundle([("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", build.code_object("gfx90a:xnack+"))], align=64)
    )
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    with suppress(DataError):
        read_bundle(BytesReader(bytes(whole)), 0)
