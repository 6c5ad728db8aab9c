"""The few parts of an ELF file that are needed: header, segments, section names, what it is linked against.

Read with ``struct`` rather than pyelftools: this way a stream can be read forwards, a hostile table is bounded before
it is walked, and ten thousand libraries take seconds. The tests compare the outcome with pyelftools.
"""

from __future__ import annotations

import struct

import msgspec

from rocmend.codeobject.reader import PassedError, Reader
from rocmend.core.errors import DataError

MAGIC = b"\x7fELF"
HEADER_BYTES = 64
SECTION_NAMES_MARK = b".shstrtab\0"
"""Stands in the section name table itself, which is how a stream notices the table as it passes."""

NAMES_MAX_BYTES = 1 << 16
_MAX_SEGMENTS = 512
_MAX_SECTIONS = 70_000
_MAX_DYNAMIC_BYTES = 1 << 20
_MAX_NAME_BYTES = 256
_MAX_NEEDED = 1024

PT_LOAD, PT_DYNAMIC, PT_NOTE = 1, 2, 4
PF_X = 1
SHT_NOBITS = 8
SHF_ALLOC, SHF_EXECINSTR = 2, 4
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 10, 14, 15, 29

_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<qQ")


class Segment(msgspec.Struct, frozen=True):
    """A program header."""

    kind: int
    offset: int
    address: int
    size: int
    flags: int = 0
    memory_size: int = 0


class Section(msgspec.Struct, frozen=True):
    """A section header with its name ("" where the names could not be read)."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int = 0
    entry_size: int = 0
    address: int = 0

    @property
    def end(self) -> int:
        """Offset after its last byte."""
        return self.offset + self.size

    @property
    def is_data(self) -> bool:
        """Loaded into memory, backed by the file, not machine code."""
        return bool(self.flags & SHF_ALLOC) and not self.flags & SHF_EXECINSTR and self.kind != SHT_NOBITS


class Header(msgspec.Struct, frozen=True):
    """An ELF header; ``wide`` is false for 32-bit or big-endian files, of which nothing else is read."""

    wide: bool
    machine: int
    os_abi: int
    abi_version: int
    flags: int
    kind: int = 0
    segments_at: int = 0
    segment_size: int = 0
    segment_count: int = 0
    sections_at: int = 0
    section_size: int = 0
    section_count: int = 0
    names_index: int = 0


class Dynamic(msgspec.Struct, frozen=True):
    """What the dynamic linker is asked for."""

    needed: tuple[str, ...] = ()
    soname: str = ""
    runpath: tuple[str, ...] = ()


def read_header(data: bytes, name: str) -> Header:
    """Parse the first 64 bytes.

    Raises:
        DataError: They are not an ELF header.
    """
    if len(data) < 20 or data[:4] != MAGIC:
        raise DataError(name, "is not an ELF file.")
    wide = data[4] == 2 and data[5] == 1
    machine = int.from_bytes(data[18:20], "little" if data[5] == 1 else "big")
    if not wide:
        return Header(wide, machine, data[7], data[8], 0)
    if len(data) < HEADER_BYTES:
        raise DataError(name, f"ends inside its ELF header ({len(data)} of {HEADER_BYTES} bytes).")
    phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<QQIHHHHHH", data, 32)
    return Header(
        wide,
        machine,
        data[7],
        data[8],
        flags,
        int.from_bytes(data[16:18], "little"),
        phoff,
        phentsize,
        phnum,
        shoff,
        shentsize,
        shnum,
        shstrndx,
    )


def read_segments(reader: Reader, header: Header) -> tuple[Segment, ...]:
    """Return the program headers.

    Raises:
        DataError: The table is cut off, too long, or of an unknown entry size.
    """
    if not header.segment_count:
        return ()
    if header.segment_size != _SEGMENT.size or header.segment_count > _MAX_SEGMENTS:
        raise DataError(
            reader.name, f"declares {header.segment_count} program headers of {header.segment_size} bytes each."
        )
    table = reader.read_exactly(header.segments_at, header.segment_count * _SEGMENT.size, "its program headers")
    return tuple(
        Segment(kind, offset, address, size, flags, memory_size)
        for kind, flags, offset, address, _, size, memory_size, _ in _SEGMENT.iter_unpack(table)
    )


def read_sections(reader: Reader, header: Header) -> tuple[Section, ...]:
    """Return the section headers with their names.

    Raises:
        DataError: The table is cut off, too long, or of an unknown entry size.
    """
    if not header.sections_at:
        return ()
    if header.section_size != _SECTION.size:
        raise DataError(reader.name, f"declares section headers of {header.section_size} bytes; 64 expected.")
    count, names_index = header.section_count, header.names_index
    if not count:  # more than 65,279 of them: the real numbers stand in entry 0
        first = _SECTION.unpack(reader.read_exactly(header.sections_at, _SECTION.size, "its section headers"))
        count, names_index = first[5], first[6] if names_index == 0xFFFF else names_index
    if count > _MAX_SECTIONS:
        raise DataError(reader.name, f"declares {count} sections; at most {_MAX_SECTIONS} are read.")
    table = reader.read_exactly(header.sections_at, count * _SECTION.size, "its section headers")
    raw = list(_SECTION.iter_unpack(table))
    names = _section_names(reader, raw, names_index)
    return tuple(Section(_name(names, row[0]), row[1], row[2], row[4], row[5], row[6], row[9], row[3]) for row in raw)


def _section_names(reader: Reader, raw: list[tuple[int, ...]], index: int) -> bytes:
    if index >= len(raw):
        return b""
    offset, size = raw[index][4], raw[index][5]
    try:
        return reader.read(offset, min(size, NAMES_MAX_BYTES))
    except PassedError:
        return b""  # far from the end of a stream and not noticed in passing: sections stay unnamed


def _name(table: bytes, at: int) -> str:
    end = table.find(b"\0", at, at + _MAX_NAME_BYTES)
    return table[at : end if end >= 0 else at + _MAX_NAME_BYTES].decode("utf-8", "replace")


def file_offset(segments: tuple[Segment, ...], address: int) -> int | None:
    """Return where in the file the byte stands that is loaded to an address; None where it comes from no file."""
    for segment in segments:
        if segment.kind == PT_LOAD and segment.address <= address < segment.address + segment.size:
            return address - segment.address + segment.offset
    return None


def read_dynamic(reader: Reader, segments: tuple[Segment, ...]) -> Dynamic:
    """Return what the file is linked against; empty for a static one.

    Raises:
        DataError: The table or its strings cannot be read.
        PassedError: They stand in a part of a stream that is gone.
    """
    dynamic = next((segment for segment in segments if segment.kind == PT_DYNAMIC), None)
    if dynamic is None:
        return Dynamic()
    if dynamic.size > _MAX_DYNAMIC_BYTES:
        raise DataError(reader.name, f"declares a dynamic section of {dynamic.size} bytes.")
    table = reader.read(dynamic.offset, dynamic.size)
    tags: list[tuple[int, int]] = []
    for tag, value in _DYNAMIC.iter_unpack(table[: len(table) // _DYNAMIC.size * _DYNAMIC.size]):
        if tag == 0:
            break
        tags.append((tag, value))
    values = dict(tags)
    offset = file_offset(segments, values.get(DT_STRTAB, -1))
    if offset is None:
        return Dynamic()

    def text(at: int) -> str:
        if at >= values.get(DT_STRSZ, 0):
            return ""
        return _name(reader.read(offset + at, _MAX_NAME_BYTES), 0)

    def paths(at: int) -> tuple[str, ...]:
        raw = reader.read(offset + at, min(values.get(DT_STRSZ, 0) - at, NAMES_MAX_BYTES)) if at >= 0 else b""
        return tuple(filter(None, raw.partition(b"\0")[0].decode("utf-8", "replace").split(":")))

    needed = tuple(text(value) for tag, value in tags[:_MAX_NEEDED] if tag == DT_NEEDED)
    run = next((value for tag, value in tags if tag in {DT_RUNPATH, DT_RPATH}), None)
    in_table = run is not None and run < values.get(DT_STRSZ, 0)
    return Dynamic(
        tuple(filter(None, needed)),
        text(values[DT_SONAME]) if DT_SONAME in values else "",
        paths(run) if in_table and run is not None else (),
    )
