"""Whether all bytes that a file's headers describe are there: checked before anything is said about a code object.

A loader maps what the headers describe. Of a file that was cut off in a download the header still says which GPU it is
for, so that the header alone must never decide. Nor does the length: a download that allocated its file first, or a
loss of power, leaves zeros where the rest should be. What lies last in a file, its section headers, is never zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress

import zstandard

from rocmend.codeobject import elf
from rocmend.codeobject.notes import Kernel, read_kernels
from rocmend.codeobject.reader import PassedError, Reader
from rocmend.core.errors import DataError

ET_EXEC, ET_DYN = 2, 3
_SHT_SYMTAB, _SHT_STRTAB, _SHT_DYNSYM = 2, 3, 11
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION_KIND_AT, _SECTION_ALIGN_AT = 4, 48
_DESCRIPTOR_BYTES = 64
_ENTRY_AT = 16
_FIRST_CODE_BYTES = 16
_DESCRIPTOR_SUFFIX = b".kd"
_MAX_DESCRIPTORS = 4096
_ZERO_BLOCK_BYTES = 1 << 16
_MAX_ZEROS_READ = 256 << 20
_MAX_CODE_READ = 16 << 20
_MANY_ZEROS = 4096
"""Data can end in some zeros of its own."""

_ZSTD_ZEROS = 16
"""A compressed block ends in the mark of its bit stream: no frame ends in so many zeros."""

_MAX_SYMBOL_BYTES = 4 << 20
_ZSTD_HEADER_BYTES = 18
_ZSTD_MAX_BLOCKS = 1 << 20
_ZSTD_UNKNOWN = {zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR}
_RLE, _COMPRESSED, _RESERVED = 1, 2, 3


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
    with suppress(PassedError):
        _check_last_section(reader, header)


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
    if reader.seekable and limit == reader.size:
        _check_tail(
            reader, header
        )  # before what is damaged by zeros: a reader of the message wants to know of the zeros
    segments = elf.read_segments(reader, header)
    _check_ends(reader, max(segment.offset + segment.size for segment in segments), what)
    if not any(segment.kind == elf.PT_LOAD for segment in segments):
        raise DataError(reader.name, "is damaged: no program header says what of it is loaded.")
    kernels: tuple[Kernel, ...] = ()
    if all(segment.offset + segment.size <= limit for segment in segments if segment.kind == elf.PT_NOTE):
        with suppress(PassedError):
            kernels = read_kernels(reader)
    with suppress(PassedError):
        _check_code(reader, segments, limit)
    if _table_end(header) <= limit:
        with suppress(PassedError):
            sections = elf.read_sections(reader, header)
            _check_sections(reader, sections, what)
            _check_last_section(reader, header)
            if limit == reader.size:
                _check_descriptors(reader, segments, sections, kernels)
    return len(kernels)


def _check_tail(reader: Reader, header: elf.Header) -> None:
    """Check that the end of a code object is not zeros: of its section headers, or of the data that it ends with."""
    _check_last_section(reader, header)
    ranges = [(one.offset, one.size) for one in elf.read_segments(reader, header) if one.kind == elf.PT_LOAD]
    with suppress(DataError):  # what is wrong with them is said where they are checked
        if header.sections_at:
            described = elf.read_sections(reader, header)
            ranges = [(one.offset, one.size) for one in described if one.kind not in {0, elf.SHT_NOBITS}]
    start, size = max((one for one in ranges if one[1]), key=sum, default=(0, 0))
    if start + size <= (header.sections_at + header.section_size * header.section_count):
        return  # the section headers are behind it, and they are there
    from_byte = _zeros_from(reader)
    if from_byte <= start or start + size - from_byte >= _MANY_ZEROS:
        raise _zeros(reader, from_byte)


def _check_last_section(reader: Reader, header: elf.Header) -> None:
    """Check the last section header: its kind and its alignment are zero in that of no real section."""
    if not header.sections_at or header.section_count < 2:
        return
    row = header.sections_at + header.section_size * (header.section_count - 1)
    last = reader.read_exactly(row, header.section_size, "its section headers")
    if not any(last[_SECTION_KIND_AT : _SECTION_KIND_AT + 4]) or not any(last[_SECTION_ALIGN_AT:]):
        from_byte = _zeros_from(reader) if reader.seekable else row
        if from_byte >= row + header.section_size:
            raise DataError(
                reader.name, "is damaged: its last section header is zeros.", next_step="Get the file again."
            )
        raise _zeros(reader, from_byte)


def _zeros(reader: Reader, from_byte: int) -> DataError:
    return DataError(
        reader.name,
        f"is damaged: its bytes from {from_byte:,} on are zero, where its headers describe data.",
        why="A download that stopped or a loss of power leaves such a file, as long as the whole one.",
        next_step="Get the file again.",
    )


def _zeros_from(reader: Reader) -> int:
    """Return where the zeros begin that data ends with."""
    end = reader.size
    while end and reader.size - end < _MAX_ZEROS_READ:
        start = max(0, end - _ZERO_BLOCK_BYTES)
        rest = reader.read(start, end - start).rstrip(b"\0")
        if rest:
            return start + len(rest)
        end = start
    return end


def _check_code(reader: Reader, segments: Sequence[elf.Segment], limit: int) -> None:
    for segment in segments:
        if segment.kind != elf.PT_LOAD or not segment.flags & elf.PF_X or not segment.size:
            continue
        at, end = segment.offset, segment.offset + segment.size
        if end > limit or segment.size > _MAX_CODE_READ:
            continue
        while at < end and not any(reader.read(at, min(_ZERO_BLOCK_BYTES, end - at))):
            at += _ZERO_BLOCK_BYTES
        if at >= end:
            raise DataError(
                reader.name,
                f"is damaged: the {segment.size:,} bytes of its code are all zero.",
                next_step="Get it again.",
            )


def _check_descriptors(
    reader: Reader, segments: tuple[elf.Segment, ...], sections: Sequence[elf.Section], kernels: Sequence[Kernel]
) -> None:
    """Check that kernels' descriptors, and the code that they point to, are there.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#kernel-descriptor
    """
    table = next((section for section in sections if section.kind == _SHT_DYNSYM and section.size), None)
    if table is None or table.size > _MAX_SYMBOL_BYTES or sections[table.link].size > _MAX_SYMBOL_BYTES:
        return
    names = reader.read(sections[table.link].offset, sections[table.link].size)
    found = {}
    for name, _, _, section, address, _ in _SYMBOL.iter_unpack(reader.read(table.offset, table.size)):
        called = names[name : names.find(b"\0", name)]
        if name and not called:
            raise DataError(reader.name, "is damaged: a symbol has no name where its string table should have one.")
        if section and called.endswith(_DESCRIPTOR_SUFFIX):
            found[called.removesuffix(_DESCRIPTOR_SUFFIX).decode(errors="replace")] = address
    if kernels and found.keys().isdisjoint(kernel.name for kernel in kernels):
        raise DataError(reader.name, f"is damaged: no symbol leads to its kernel {kernels[0].name[:80]!r}.")
    for name, address in list(found.items())[:_MAX_DESCRIPTORS]:
        descriptor = _loaded(reader, segments, address, _DESCRIPTOR_BYTES)
        entry = address + int.from_bytes(descriptor[_ENTRY_AT : _ENTRY_AT + 8], "little", signed=True)
        if not any(descriptor) or not any(_loaded(reader, segments, entry, _FIRST_CODE_BYTES)):
            raise DataError(reader.name, f"is damaged: where its kernel {name[:80]!r} should be, there are zeros.")


def _loaded(reader: Reader, segments: tuple[elf.Segment, ...], address: int, size: int) -> bytes:
    """Return bytes by the address that they are loaded to; none where nothing is."""
    offset = elf.file_offset(segments, address)
    return b"" if offset is None else reader.read(offset, size)


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
    last = kind = 0
    for _ in range(_ZSTD_MAX_BLOCKS):
        block = int.from_bytes(reader.read_exactly(at, 3, "a compressed offload bundle"), "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE else size)
        if last or kind == _RESERVED or at > end:
            break
    at += 4 * frame.has_checksum
    if not last or at > end:
        raise cut_off(reader.name, end - start, at - start, "bundle", "that its blocks describe")
    tail = reader.read(max(start, at - _ZSTD_ZEROS), min(_ZSTD_ZEROS, at - start))
    if kind == _COMPRESSED and len(tail) == _ZSTD_ZEROS and not any(tail):
        raise _zeros(reader, at - _ZSTD_ZEROS)
    return at, None if frame.content_size in _ZSTD_UNKNOWN else frame.content_size
