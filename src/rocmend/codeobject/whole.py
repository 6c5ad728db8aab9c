"""Whether all bytes that a file's headers describe are there: checked before anything is said about a code object.

A loader maps what the headers describe. Of a file that was cut off in a download the header still says which GPU it is
for, so that the header alone must never decide.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress

import zstandard

from rocmend.codeobject import elf
from rocmend.codeobject.notes import read_kernels
from rocmend.codeobject.reader import PassedError, Reader
from rocmend.core.errors import DataError

ET_EXEC, ET_DYN = 2, 3
_SHT_SYMTAB, _SHT_STRTAB, _SHT_DYNSYM = 2, 3, 11
_SYMBOL = struct.Struct("<IBBHQQ")
_MAX_SYMBOL_BYTES = 4 << 20
_ZSTD_HEADER_BYTES = 18
_ZSTD_MAX_BLOCKS = 1 << 20
_ZSTD_UNKNOWN = {zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR}
_RLE, _RESERVED = 1, 3


def cut_off(
    name: str, there: int, described: int, what: str = "file", whose: str = "its headers describe"
) -> DataError:
    """Return the error for data that ends before the bytes that its headers describe."""
    return DataError(
        name,
        f"is cut off: the {what} has {there:,} of the {described:,} bytes {whose}.",
        why="Only a whole code object can be loaded.",
        next_step="Get the file again.",
    )


def as_reason(error: DataError) -> str:
    """Return an error's message as a reason: ``cut off: the file has …``."""
    return error.message.removeprefix("is ").rstrip(".")


def check_tables(reader: Reader, header: elf.Header, what: str = "file") -> None:
    """Check that a file is as long as its header says its tables reach.

    Raises:
        DataError: It is cut off.
    """
    if _table_end(header) > reader.size:
        raise cut_off(reader.name, reader.size, _table_end(header), what)


def check_library(reader: Reader, header: elf.Header, sections: Sequence[elf.Section]) -> None:
    """Check that a host library has the bytes that its sections, or without them its segments, describe.

    Raises:
        DataError: It is cut off, or its tables cannot be read.
        PassedError: They stand in a part of a stream that is gone.
    """
    ends = [section.end for section in sections if section.kind not in {0, elf.SHT_NOBITS}]
    if not sections:
        segments = elf.read_segments(reader, header)
        ends = [segment.offset + segment.size for segment in segments if segment.kind == elf.PT_LOAD]
    _check_ends(reader, max(ends, default=0))


def check_code_object(reader: Reader, *, readable: int | None = None, what: str = "file") -> int:
    """Check that a code object is whole: its tables, segments, sections, symbols and notes.

    Args:
        reader: The code object, from its first byte to its last.
        readable: Only so many bytes may be read; what the tables within them describe is checked.
        what: What messages call it.

    Returns:
        The number of its kernels; 0 where the notes were not readable.

    Raises:
        DataError: Bytes that it describes are not there, or a table cannot be right.
    """
    header = elf.read_header(reader.read(0, elf.HEADER_BYTES), reader.name)
    check_tables(reader, header, what)
    if header.kind not in {ET_EXEC, ET_DYN}:
        raise DataError(reader.name, f"is not linked (ELF type {header.kind}): no runtime loads it.")
    if not header.segments_at or not header.segment_count:
        raise DataError(reader.name, "is damaged: it has no program headers, so that nothing of it would be loaded.")
    limit = reader.size if readable is None else readable
    if header.segments_at + header.segment_size * header.segment_count > limit:
        return 0
    segments = elf.read_segments(reader, header)
    _check_ends(reader, max(segment.offset + segment.size for segment in segments), what)
    kernels = 0
    if all(segment.offset + segment.size <= limit for segment in segments if segment.kind == elf.PT_NOTE):
        with suppress(PassedError):
            kernels = len(read_kernels(reader))
    if _table_end(header) <= limit:
        with suppress(PassedError):
            _check_sections(reader, elf.read_sections(reader, header), what)
    return kernels


def _table_end(header: elf.Header) -> int:
    return max(
        elf.HEADER_BYTES,
        header.segments_at + header.segment_size * header.segment_count if header.segments_at else 0,
        header.sections_at + header.section_size * max(header.section_count, 1) if header.sections_at else 0,
    )


def _check_ends(reader: Reader, described: int, what: str = "file") -> None:
    if described > reader.size:
        raise cut_off(reader.name, reader.size, described, what)


def _check_sections(reader: Reader, sections: Sequence[elf.Section], what: str) -> None:
    _check_ends(reader, max((one.end for one in sections if one.kind not in {0, elf.SHT_NOBITS}), default=0), what)
    for section in sections:
        if section.kind in {_SHT_SYMTAB, _SHT_DYNSYM} and section.size:
            _check_symbols(reader, section, sections)


def _check_symbols(reader: Reader, table: elf.Section, sections: Sequence[elf.Section]) -> None:
    if table.entry_size != _SYMBOL.size or table.size % _SYMBOL.size:
        raise DataError(reader.name, f"is damaged: a symbol table of {table.size} bytes, {table.entry_size} a symbol.")
    if table.link >= len(sections) or sections[table.link].kind != _SHT_STRTAB:
        raise DataError(reader.name, "is damaged: a symbol table's names are in no string table.")
    if table.size > _MAX_SYMBOL_BYTES:
        return
    names = sections[table.link].size
    with suppress(PassedError):
        for name, *_ in _SYMBOL.iter_unpack(reader.read_exactly(table.offset, table.size, "its symbol table")):
            if name >= names:
                raise DataError(reader.name, "is damaged: a symbol's name is beyond its string table.")


def zstd_frame(reader: Reader, start: int, end: int) -> tuple[int, int | None]:
    """Walk a zstd frame from block to block, without inflating it.

    Args:
        reader: Where it is.
        start: Where the frame begins.
        end: What it may not go beyond.

    Returns:
        Where it ends, and what it says it inflates to (None where it does not say).

    Raises:
        DataError: It is none, or is cut off.
        PassedError: A stream no longer has it.

    Source:
        https://datatracker.ietf.org/doc/html/rfc8878#section-3.1.1
    """
    head = reader.read(start, min(_ZSTD_HEADER_BYTES, end - start))
    try:
        frame = zstandard.get_frame_parameters(head)
        at = start + zstandard.frame_header_size(head)
    except zstandard.ZstdError as error:
        raise DataError(reader.name, f"holds a compressed offload bundle that does not inflate: {error}.") from error
    last = 0
    for _ in range(_ZSTD_MAX_BLOCKS):
        block = int.from_bytes(reader.read_exactly(at, 3, "a compressed offload bundle"), "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE else size)
        if last or kind == _RESERVED or at > end:
            break
    at += 4 * frame.has_checksum
    if not last or at > end:
        raise cut_off(reader.name, end - start, at - start, "bundle", "that its blocks describe")
    return at, None if frame.content_size in _ZSTD_UNKNOWN else frame.content_size
