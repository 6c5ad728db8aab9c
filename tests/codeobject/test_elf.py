from __future__ import annotations

import io
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.codeobject import elf
from rocmend.codeobject.content import read_content
from rocmend.codeobject.notes import Kernel, parse_metadata, read_kernels
from rocmend.codeobject.reader import BytesReader, StreamReader
from rocmend.core.errors import DataError

if TYPE_CHECKING:
    from tests.codeobject.conftest import Build


def sections_and_dynamic(data: bytes) -> tuple[tuple[elf.Section, ...], elf.Dynamic]:
    reader = BytesReader(data)
    header = elf.read_header(data[:64], "f")
    return elf.read_sections(reader, header), elf.read_dynamic(reader, elf.read_segments(reader, header))


def test_agrees_with_pyelftools(build: type[Build]) -> None:
    data = build.hip_library(
        build.bundle_for("gfx1100"),
        needed=["libamdhip64.so.7", "libc.so.6"],
        soname="libx.so.1",
        runpath="$ORIGIN:/opt/rocm-7.1.0/lib",
    )
    sections, dynamic = sections_and_dynamic(data)
    other = ELFFile(io.BytesIO(data))
    assert [(item.name, item.offset, item.size) for item in sections] == [
        (item.name, item["sh_offset"], item["sh_size"]) for item in other.iter_sections()
    ]
    section = other.get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    tags = list(section.iter_tags())
    assert list(dynamic.needed) == [vars(tag)["needed"] for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
    assert dynamic.soname == "libx.so.1"
    assert dynamic.runpath == ("$ORIGIN", "/opt/rocm-7.1.0/lib")


def test_code_object_agrees_with_pyelftools(build: type[Build]) -> None:
    other = ELFFile(io.BytesIO(build.code_object("gfx1151", kernels=[{".name": "k"}])))
    assert (other["e_machine"], other["e_flags"]) == ("EM_AMDGPU", 0x4A)
    notes = [
        note for segment in other.iter_segments() if isinstance(segment, NoteSegment) for note in segment.iter_notes()
    ]
    assert [note["n_name"] for note in notes] == ["AMDGPU"]


def test_kernels(build: type[Build]) -> None:
    kernel = {
        ".name": "_Z4gemmPf", ".wavefront_size": 32, ".vgpr_count": 96, ".sgpr_count": 22, ".agpr_count": 4,
        ".group_segment_fixed_size": 16384, ".private_segment_fixed_size": 8, ".vgpr_spill_count": 2,
        ".sgpr_spill_count": 0, ".max_flat_workgroup_size": 256, ".args": [{".size": 8}],
    }  # fmt: skip
    data = build.code_object("gfx1100", kernels=[kernel, {".name": "second"}])
    assert read_kernels(BytesReader(data)) == (
        Kernel("_Z4gemmPf", 32, 96, 22, 4, 16384, 8, 2, 0, 256),
        Kernel("second"),
    )
    content = read_content(BytesReader(data))
    assert (content.kind, content.kernels, content.code_objects[0].target) == ("code-object", 2, "gfx1100")


@pytest.mark.parametrize(
    "note",
    [b"\xdd\xff\xff\xff\xff", b"\x91" * 5000, b"\x80", b"\x81\xaeamdhsa.kernels\x01", b"\x93\x01\x02\x03", b"\xc1"],
)
def test_hostile_metadata(note: bytes) -> None:
    """Cut off, nested without end, or of another shape: none, or an error."""
    with suppress(DataError):
        assert parse_metadata(note, "f") == ()


def test_a_million_empty_kernels_are_refused() -> None:
    note = b"\x81\xaeamdhsa.kernels\xdd" + struct.pack(">I", 1_000_000) + b"\x80" * 1_000_000
    with pytest.raises(DataError, match="lists 1000000 kernels"):
        parse_metadata(note, "f")


def test_a_count_that_is_no_number() -> None:
    note = msgspec.msgpack.encode({"amdhsa.kernels": [{".name": "k" * 80, ".vgpr_count": "many"}]})
    with pytest.raises(DataError, match="cannot be decoded"):
        parse_metadata(note, "f")


def test_more_than_65279_sections_are_counted_in_the_first(build: type[Build]) -> None:
    data = bytearray(build.library({".a": b"1"}))
    (at,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    data[60:64] = struct.pack("<HH", 0, 0xFFFF)
    data[at : at + 64] = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, names, 0, 0, 0)
    assert [item.name for item in sections_and_dynamic(bytes(data))[0]][-2:] == [".a", ".shstrtab"]


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (56, struct.pack("<H", 60000), "60000 program headers"),
        (54, struct.pack("<H", 3), "of 3 bytes each"),
        (58, struct.pack("<H", 5), "headers of 5 bytes"),
        (60, struct.pack("<H", 60000), "cut off: the file has"),
        (40, struct.pack("<Q", 2**63), "cut off: the file has"),
        (32, struct.pack("<Q", 2**64 - 1), "ends inside its program headers"),
    ],
)
def test_damaged_tables_are_problems(build: type[Build], at: int, value: bytes, message: str) -> None:
    data = bytearray(build.library({".rodata": b"x"}))
    data[at : at + len(value)] = value
    content = read_content(BytesReader(bytes(data)))
    assert any(message in text for text in content.problems)


def test_four_gigabyte_dynamic_section(build: type[Build]) -> None:
    data = bytearray(build.library(needed=["liba.so"]))
    data[64 + 56 + 32 : 64 + 56 + 40] = struct.pack("<Q", 1 << 32)
    assert "dynamic section of 4294967296 bytes" in read_content(BytesReader(bytes(data))).problems[0]


def test_other_elf_files_are_not_read_further(build: type[Build]) -> None:
    data = bytearray(build.hip_library(build.bundle_for("gfx1100")))
    data[4] = 1  # 32-bit
    assert read_content(BytesReader(bytes(data))).bundles == []


@settings(max_examples=150)
@given(data=st.data())
def test_flipped_bytes_never_crash(data: st.DataObject, build: type[Build]) -> None:
    whole = bytearray(
        build.library(
            {".hip_fatbin": b"", ".nv_fatbin": b"n"}, needed=["libamdhip64.so.6"], runpath="/opt/rocm-6.2.4/lib"
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    read_content(BytesReader(cut))
    read_content(StreamReader(iter([cut[at : at + 512] for at in range(0, len(cut), 512)]), len(cut)))


@given(st.binary(max_size=600))
def test_any_bytes_after_the_magic(tail: bytes) -> None:
    read_content(BytesReader(b"\x7fELF\x02\x01\x01" + tail))
    read_content(BytesReader(b"\x7fELF\x02\x01\x01\x40" + tail))
